# What is installed beside the programs and the library (src/client/packaging.cmake): documents and what
# systemd reads.

include(GNUInstallDirs)

install(FILES README.md CHANGELOG.md SECURITY.md LICENSE docs/protocol.md docs/fencing.md docs/operating.md
              docs/page.md docs/systemd.md
        DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT server)

# systemd looks into these below /usr and /usr/local.
set(MONOLOCK_UNIT_DIR lib/systemd/system CACHE STRING "Where systemd's units are installed")
file(GLOB units CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/deploy/systemd/monolock*.service"
                                  "${PROJECT_SOURCE_DIR}/deploy/systemd/monolock*.socket")
install(FILES ${units} DESTINATION "${MONOLOCK_UNIT_DIR}" COMPONENT server)
install(FILES deploy/systemd/monolock.sysusers DESTINATION lib/sysusers.d RENAME monolock.conf COMPONENT server)
