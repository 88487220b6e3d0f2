# Runs the same seeds twice, once on one thread and once on three, and compares all that is said on
# standard output: the totals, and the digest of every line of every journal. Then one seed with its
# trace, twice.
foreach(jobs 1 3)
  execute_process(COMMAND "${SIMULATE}" --seeds 60 --scaled --jobs ${jobs}
                  OUTPUT_VARIABLE said_${jobs} COMMAND_ERROR_IS_FATAL ANY)
  if(NOT said_${jobs} MATCHES "\ndigest of all journals [0-9a-f]+\n")
    message(FATAL_ERROR "no digest in\n${said_${jobs}}")
  endif()
endforeach()
if(NOT said_1 STREQUAL said_3)
  message(FATAL_ERROR "two runs of the same seeds differ:\n${said_1}\n${said_3}")
endif()
foreach(run 1 2)
  execute_process(COMMAND "${SIMULATE}" --seed 7 --seeds 1 --trace
                  OUTPUT_VARIABLE trace_${run} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
string(LENGTH "${trace_1}" length)
if(length LESS 10000 OR NOT trace_1 STREQUAL trace_2)
  message(FATAL_ERROR "two traces of the same seed differ, or are none")
endif()
