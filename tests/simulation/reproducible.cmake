# Runs the same seeds twice, once on one thread and once on three, and compares all that is said but
# the speed: the totals, and the digest of every line of every journal.
foreach(jobs 1 3)
  execute_process(COMMAND "${SIMULATE}" --seeds 60 --scaled --jobs ${jobs}
                  OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\nsimulated time [^\n]*" "" said_${jobs} "${said}")
  if(NOT said MATCHES "\ndigest of all journals [0-9a-f]+\n")
    message(FATAL_ERROR "no digest in\n${said}")
  endif()
endforeach()
if(NOT said_1 STREQUAL said_3)
  message(FATAL_ERROR "two runs of the same seeds differ:\n${said_1}\n${said_3}")
endif()
