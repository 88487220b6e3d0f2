#include "cli/exit_code.hpp"

#include <sys/wait.h>

#include <cerrno>

#include <monolock/error.hpp>

namespace monolock::cli {

int of_wait_status(int status) noexcept {
    return WIFSIGNALED(status) ? of_signal(WTERMSIG(status)) : WEXITSTATUS(status);
}

exit_code of_failed_acquire(const std::error_code& why) noexcept {
    if (why == errc::closed_by_administrator) {
        return exit_code::lock_lost;
    }
    if (why == condition::denied) {
        return exit_code::not_authorized;
    }
    if (why == errc::tls_files) {
        return exit_code::misconfigured;
    }
    if (why == errc::server_not_trusted || why == errc::tls_failed) {
        return exit_code::refused;
    }
    if (why == errc::protocol_violation || wire_code(why)) {
        // Below 0x10 it is the server's condition: it may be back soon.
        return why == condition::retryable ? exit_code::unreachable : exit_code::refused;
    }
    if (why == condition::misuse) {
        return exit_code::usage;
    }
    if (why == errc::thread_unavailable) {
        return exit_code::system_failure;
    }
    return exit_code::unreachable;
}

exit_code of_failed_exec(int error_number) noexcept {
    return error_number == ENOENT || error_number == ENOTDIR ? exit_code::not_found
                                                             : exit_code::not_executable;
}

}  // namespace monolock::cli
