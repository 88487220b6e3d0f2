# What is installed beside the programs and the library (src/client/packaging.cmake): documents and what
# systemd reads.

include(GNUInstallDirs)

# The book lies beside the README as it does here, so that its links lead to its pages.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT server)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" COMPONENT server
        FILES_MATCHING PATTERN "*.md" PATTERN openapi.yaml PATTERN man EXCLUDE)

# systemd looks into these below /usr and /usr/local.
set(MONOLOCK_UNIT_DIR lib/systemd/system CACHE STRING "Where systemd's units are installed")
file(GLOB units CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/deploy/systemd/monolock*.service"
                                  "${PROJECT_SOURCE_DIR}/deploy/systemd/monolock*.socket")
install(FILES ${units} DESTINATION "${MONOLOCK_UNIT_DIR}" COMPONENT server)
install(FILES deploy/systemd/monolock.sysusers DESTINATION lib/sysusers.d RENAME monolock.conf COMPONENT server)
