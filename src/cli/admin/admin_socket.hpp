#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "config/address.hpp"
#include "posix/descriptor.hpp"

namespace monolock::cli {

using deadline = std::chrono::steady_clock::time_point;

// A stream connection, TCP or Unix, of which every wait ends: at a deadline, or when `interrupt`
// (if not negative) is readable. A failure is an admin_error. An interrupt is
// `interrupted`; who was receiving then can go on receiving.
class admin_socket {
public:
    // Resolves the host, and tries all its addresses in order.
    admin_socket(const config::address& to, deadline by, int interrupt);

    void send(std::string_view what, deadline by);
    // At least a byte, or 0 at the end.
    [[nodiscard]] std::size_t receive(std::span<char> into, deadline by);

    // The numeric address that it is connected to, as a Host field has it; "localhost" for Unix.
    [[nodiscard]] const std::string& host() const noexcept { return host_; }

private:
    posix::descriptor fd_;
    int interrupt_;
    std::string host_;
};

}  // namespace monolock::cli
