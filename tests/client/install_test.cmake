# Installs the client library into a new prefix, moves the tree, and builds and runs an outside project
# against it, once with the CMake package and once with pkg-config.
# Expects BUILD_DIR, SOURCE_DIR, WORK_DIR, CXX, CXX_FLAGS, LIBDIR.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/first" --component client)
file(RENAME "${WORK_DIR}/first" "${WORK_DIR}/prefix")
set(prefix "${WORK_DIR}/prefix")

run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}/outside" -B "${WORK_DIR}/cmake"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/cmake")
run("${WORK_DIR}/cmake/outside")

find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  message(STATUS "pkg-config is not installed: the CMake package alone was tried")
  return()
endif()
set(ENV{PKG_CONFIG_PATH} "${prefix}/${LIBDIR}/pkgconfig")
run("${pkg_config}" --cflags --libs monolock)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
separate_arguments(more UNIX_COMMAND "${CXX_FLAGS}")
run("${CXX}" -std=c++20 ${more} "${SOURCE_DIR}/outside/main.cpp" -o "${WORK_DIR}/by-pkg-config"
    ${flags} -pthread "-Wl,-rpath,${prefix}/${LIBDIR}")
run("${WORK_DIR}/by-pkg-config")
