# libmonolock as others link it: shared, static or both, and what they need to build against it: headers, a
# CMake package (find_package gives monolock::monolock, as does this directory in somebody else's build)
# and a pkg-config file. `cmake --install BUILD --component client` installs just these.
#
# BUILD_SHARED_LIBS chooses one of the two, as everywhere. Where nobody said, both are built to be installed,
# and the static one for a build that this is a part of.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Raised when a program built against an earlier library no longer runs with this one: when a line of
# libmonolock.symbols changes or goes, or abi_test.cpp has to change. The node of libmonolock.map and the
# Debian package libmonolock1 are called after it.
set(monolock_abi_version 1)

set(monolock_public_headers
  boot_clock.hpp client.hpp driven.hpp error.hpp export.hpp lock.hpp monolock.hpp)
list(TRANSFORM monolock_public_headers PREPEND "${PROJECT_SOURCE_DIR}/include/monolock/")

if(DEFINED BUILD_SHARED_LIBS)
  set(monolock_shared "${BUILD_SHARED_LIBS}")
  if(BUILD_SHARED_LIBS)
    set(monolock_static OFF)
  else()
    set(monolock_static ON)
  endif()
else()
  set(monolock_shared "${PROJECT_IS_TOP_LEVEL}")
  set(monolock_static ON)
endif()

set(monolock_installed "")
if(monolock_shared)
  set(monolock_version_script "${CMAKE_CURRENT_SOURCE_DIR}/libmonolock.map")
  add_library(monolock_client SHARED $<TARGET_OBJECTS:monolock_client_static>)
  target_link_libraries(monolock_client
    PRIVATE monolock_settings monolock_claim monolock_address monolock_tls Threads::Threads)
  target_link_options(monolock_client PRIVATE
    "LINKER:--version-script=${monolock_version_script}" "LINKER:--no-undefined-version")
  set_target_properties(monolock_client PROPERTIES
    EXPORT_NAME shared
    VERSION "${PROJECT_VERSION}"
    SOVERSION "${monolock_abi_version}"
    LINK_DEPENDS "${monolock_version_script}")
  add_library(monolock::monolock ALIAS monolock_client)
  list(APPEND monolock_installed monolock_client)
endif()
if(monolock_static)
  # One archive that needs none of the others.
  find_package(OpenSSL 3.0 REQUIRED)
  add_library(monolock_client_archive STATIC
    $<TARGET_OBJECTS:monolock_client_static> $<TARGET_OBJECTS:monolock_claim>
    $<TARGET_OBJECTS:monolock_address> $<TARGET_OBJECTS:monolock_posix>
    $<TARGET_OBJECTS:monolock_protocol> $<TARGET_OBJECTS:monolock_tls>)
  target_link_libraries(monolock_client_archive PRIVATE OpenSSL::SSL Threads::Threads)
  set_target_properties(monolock_client_archive PROPERTIES EXPORT_NAME static)
  if(NOT monolock_shared)
    add_library(monolock::monolock ALIAS monolock_client_archive)
  endif()
  list(APPEND monolock_installed monolock_client_archive)
endif()
foreach(library IN LISTS monolock_installed)
  target_sources(${library} PUBLIC FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${monolock_public_headers})
  target_compile_features(${library} PUBLIC cxx_std_20)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME monolock LINKER_LANGUAGE CXX)
endforeach()

# monolock/asio.hpp over it, for those who have Boost: a header, and nothing of it in the library.
find_package(Boost 1.81 QUIET)
if(TARGET Boost::headers)
  add_library(monolock_asio INTERFACE)
  target_sources(monolock_asio INTERFACE FILE_SET HEADERS
    BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES "${PROJECT_SOURCE_DIR}/include/monolock/asio.hpp")
  target_link_libraries(monolock_asio INTERFACE monolock::monolock Boost::headers)
  add_library(monolock::asio ALIAS monolock_asio)
endif()

if(NOT MONOLOCK_INSTALL)
  return()
endif()

set(monolock_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/monolock")
foreach(library IN LISTS monolock_installed)
  get_target_property(kind ${library} EXPORT_NAME)
  install(TARGETS ${library} EXPORT monolock_${kind}_targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT client
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT client
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT client)
  install(EXPORT monolock_${kind}_targets
    NAMESPACE monolock:: FILE monolock-${kind}-targets.cmake
    DESTINATION "${monolock_package_dir}" COMPONENT client)
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/include/monolock/asio.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/monolock" COMPONENT client)

# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/monolock-config-version.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(FILES monolock-config.cmake "${CMAKE_CURRENT_BINARY_DIR}/monolock-config-version.cmake"
  DESTINATION "${monolock_package_dir}" COMPONENT client)

# The prefix as seen from the file itself, so that the installed tree can be moved.
file(RELATIVE_PATH monolock_pc_prefix
  "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" monolock_pc_prefix "${monolock_pc_prefix}")
configure_file(monolock.pc.in "${CMAKE_CURRENT_BINARY_DIR}/monolock.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/monolock.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT client)
