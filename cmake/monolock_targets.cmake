# Two functions that make our targets alike.

# monolock_library(NAME HEADERS a.hpp… SOURCES a.cpp… LIBS …)
# A static library of ours below src/. Its headers form a header set, so that the build target
# all_verify_interface_header_sets compiles each of them alone.
function(monolock_library name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${CMAKE_SOURCE_DIR}/src"
                                FILES ${arg_HEADERS})
  target_link_libraries(${name} PUBLIC monolock_settings ${arg_LIBS})
endfunction()

# monolock_test(NAME SOURCES a_test.cpp… LIBS …)
# A GoogleTest program; each of its cases becomes a ctest entry. It finds tests/support by itself.
function(monolock_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT MONOLOCK_BUILD_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE monolock_settings ${arg_LIBS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

if(MONOLOCK_BUILD_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
endif()
