# Compares the dynamic symbols of libmonolock.so with the list in the repository.
# Expects NM, LIBRARY, EXPECTED.
#
# A symbol that is new is added to the list with the function; one that changed or went breaks programs
# built before, and asks for a new soname (src/client/packaging.cmake). To write the list anew:
#   nm -D --defined-only -P libmonolock.so | grep -v ' A ' | sed 's/@.*//' | LC_ALL=C sort
# (Names alone: whether a type's data is weak is the compiler's choice, and A is the version's own.)

execute_process(COMMAND "${NM}" -D --defined-only -P "${LIBRARY}"
                OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(found)
foreach(line IN LISTS lines)
  if(NOT line MATCHES " A ")
    string(REGEX REPLACE "[@ ].*" "" line "${line}")
    list(APPEND found "${line}")
  endif()
endforeach()
file(STRINGS "${EXPECTED}" expected)

set(missing ${expected})
list(REMOVE_ITEM missing ${found})
set(extra ${found})
list(REMOVE_ITEM extra ${expected})
if(missing OR extra)
  list(JOIN missing "\n  " missing)
  list(JOIN extra "\n  " extra)
  message(FATAL_ERROR "the library's symbols differ from ${EXPECTED}\n"
                      "missing:\n  ${missing}\nnot in the list:\n  ${extra}")
endif()
