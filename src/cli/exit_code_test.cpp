#include "cli/exit_code.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <monolock/error.hpp>

namespace monolock::cli {
namespace {

TEST(exit_code, of_the_command) {
    EXPECT_EQ(of_wait_status(0), 0);
    EXPECT_EQ(of_wait_status(7 << 8), 7);
    EXPECT_EQ(of_wait_status(255 << 8), 255);
    EXPECT_EQ(of_wait_status(15), 143);
    EXPECT_EQ(of_wait_status(9 | 0x80), 137);  // with a core dump
}

TEST(exit_code, of_a_failed_acquire) {
    EXPECT_EQ(of_failed_acquire(std::make_error_code(std::errc::connection_refused)),
              exit_code::unreachable);
    for (const errc code :
         {errc::host_not_found, errc::resolve_failed, errc::connect_timeout, errc::acquire_timeout,
          errc::heartbeat_timeout, errc::connection_closed, errc::server_shutting_down}) {
        EXPECT_EQ(of_failed_acquire(code), exit_code::unreachable) << static_cast<int>(code);
    }
    EXPECT_EQ(of_failed_acquire(errc::closed_by_administrator), exit_code::lock_lost);
    for (const errc code : {errc::not_authorized, errc::certificate_refused}) {
        EXPECT_EQ(of_failed_acquire(code), exit_code::not_authorized) << static_cast<int>(code);
    }
    EXPECT_EQ(of_failed_acquire(errc::tls_files), exit_code::misconfigured);
    for (const errc code :
         {errc::unsupported_version, errc::server_empty_name, errc::unknown_message_type,
          errc::protocol_violation, errc::server_not_trusted, errc::tls_failed}) {
        EXPECT_EQ(of_failed_acquire(code), exit_code::refused) << static_cast<int>(code);
    }
    for (const errc code : {errc::empty_name, errc::invalid_address, errc::lease_out_of_range}) {
        EXPECT_EQ(of_failed_acquire(code), exit_code::usage) << static_cast<int>(code);
    }
    EXPECT_EQ(of_failed_acquire(errc::thread_unavailable), exit_code::system_failure);
}

TEST(exit_code, unknown_server_codes_follow_their_range) {
    const auto server = [](int code) { return std::error_code{0x100 + code, error_category()}; };
    EXPECT_EQ(of_failed_acquire(server(0x0F)), exit_code::unreachable);
    EXPECT_EQ(of_failed_acquire(server(0xFF)), exit_code::refused);
}

TEST(exit_code, of_a_failed_exec) {
    EXPECT_EQ(of_failed_exec(ENOENT), exit_code::not_found);
    EXPECT_EQ(of_failed_exec(ENOTDIR), exit_code::not_found);
    EXPECT_EQ(of_failed_exec(EACCES), exit_code::not_executable);
    EXPECT_EQ(of_failed_exec(ENOEXEC), exit_code::not_executable);
}

}  // namespace
}  // namespace monolock::cli
