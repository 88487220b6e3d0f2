# libmonolock.so and what people need to build against it: headers, a CMake package (find_package
# gives monolock::client) and a pkg-config file. `cmake --install BUILD --component client` installs
# just these.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Raised when a program built against an earlier library no longer runs with this one: when a line of
# libmonolock.symbols changes or goes, or abi_test.cpp has to change.
set(monolock_abi_version 0)

set(monolock_public_headers
  boot_clock.hpp client.hpp error.hpp export.hpp lock.hpp monolock.hpp)
list(TRANSFORM monolock_public_headers PREPEND "${CMAKE_SOURCE_DIR}/include/monolock/")

set(monolock_version_script "${CMAKE_CURRENT_SOURCE_DIR}/libmonolock.map")

add_library(monolock_client SHARED $<TARGET_OBJECTS:monolock_client_static>)
add_library(monolock::client ALIAS monolock_client)
target_sources(monolock_client PUBLIC FILE_SET HEADERS
  BASE_DIRS "${CMAKE_SOURCE_DIR}/include" FILES ${monolock_public_headers})
target_compile_features(monolock_client PUBLIC cxx_std_20)
target_link_libraries(monolock_client
  PRIVATE monolock_settings monolock_claim monolock_address monolock_tls Threads::Threads)
target_link_options(monolock_client PRIVATE
  "LINKER:--version-script=${monolock_version_script}" "LINKER:--no-undefined-version")
set_target_properties(monolock_client PROPERTIES
  OUTPUT_NAME monolock
  EXPORT_NAME client
  LINKER_LANGUAGE CXX
  VERSION "${PROJECT_VERSION}"
  SOVERSION "${monolock_abi_version}"
  LINK_DEPENDS "${monolock_version_script}")

set(monolock_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/monolock")
install(TARGETS monolock_client EXPORT monolock_client_targets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT client
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT client)
install(EXPORT monolock_client_targets
  NAMESPACE monolock:: FILE monolock-targets.cmake
  DESTINATION "${monolock_package_dir}" COMPONENT client)

file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/monolock-config.cmake"
  "# find_package(monolock) gives monolock::client. It needs no other package: the library\n"
  "# brings its own dependency, OpenSSL's libssl.so, and no header shows it.\n"
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/monolock-targets.cmake\")\n")
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/monolock-config-version.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_BINARY_DIR}/monolock-config.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/monolock-config-version.cmake"
  DESTINATION "${monolock_package_dir}" COMPONENT client)

# The prefix as seen from the file itself, so that the installed tree can be moved.
file(RELATIVE_PATH monolock_pc_prefix
  "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" monolock_pc_prefix "${monolock_pc_prefix}")
configure_file(monolock.pc.in "${CMAKE_CURRENT_BINARY_DIR}/monolock.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/monolock.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT client)
