# Two functions that make our targets alike.

# monolock_library(NAME HEADERS a.hpp… SOURCES a.cpp… LIBS …)
# A static library of ours below src/. Its headers form a header set, so that the build target
# all_verify_interface_header_sets compiles each of them alone.
function(monolock_library name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/src"
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
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE monolock_settings ${arg_LIBS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# monolock_cpp_example(FILE VARIABLE)
# The first C++ program of a document, below the top folder; configures again when the document changes.
function(monolock_cpp_example file variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" document)
  string(REGEX MATCH "```cpp\n([^`]*)```" block "${document}")
  if("${CMAKE_MATCH_1}" STREQUAL "")
    message(FATAL_ERROR "${file} has no C++ example")
  endif()
  set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

if(MONOLOCK_BUILD_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
endif()
