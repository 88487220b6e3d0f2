# Options of the build, and the compiler settings that follow from them.

option(MONOLOCK_WERROR "Treat warnings as errors (the presets do; a packager need not)" OFF)
# Who takes the client library into a build of their own gets it, and nothing else.
option(MONOLOCK_BUILD_PROGRAMS "Build the server and monolockctl" ${PROJECT_IS_TOP_LEVEL})
option(MONOLOCK_BUILD_TESTS "Build the tests; needs the programs and the simulator" ${PROJECT_IS_TOP_LEVEL})
option(MONOLOCK_BUILD_SIMULATOR "Build the simulator; needs the programs" ${PROJECT_IS_TOP_LEVEL})
option(MONOLOCK_INSTALL "Install what is built" ${PROJECT_IS_TOP_LEVEL})
option(MONOLOCK_BUILD_BENCH "Build the load generator and the floor server" OFF)
option(MONOLOCK_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
set(MONOLOCK_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)

if(MONOLOCK_BUILD_TESTS AND NOT (MONOLOCK_BUILD_PROGRAMS AND (MONOLOCK_BUILD_SIMULATOR OR MONOLOCK_BUILD_FUZZERS)))
  message(FATAL_ERROR "MONOLOCK_BUILD_TESTS needs MONOLOCK_BUILD_PROGRAMS and MONOLOCK_BUILD_SIMULATOR")
endif()

# The rest of this part is ours to choose only if the build is ours.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(MONOLOCK_CCACHE ccache)
endif()
if(MONOLOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros"
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${MONOLOCK_CCACHE}")
endif()

# One interface target carries the warnings and sanitizers of our own code, so that nothing leaks to
# people who link the installed library.
add_library(monolock_settings INTERFACE)
target_compile_options(monolock_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond>
  $<$<CXX_COMPILER_ID:GNU>:-Wlogical-op>
  $<$<BOOL:${MONOLOCK_WERROR}>:-Werror>)
target_include_directories(monolock_settings INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(monolock_settings INTERFACE
  MONOLOCK_VERSION="${PROJECT_VERSION}"
  BOOST_ASIO_NO_DEPRECATED)
if(MONOLOCK_SANITIZE)
  target_compile_options(monolock_settings INTERFACE
    -fsanitize=${MONOLOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(monolock_settings INTERFACE -fsanitize=${MONOLOCK_SANITIZE})
endif()
if(MONOLOCK_BUILD_FUZZERS)
  # The fuzzer steers by the coverage of the code under test, not only of its own.
  target_compile_options(monolock_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()
