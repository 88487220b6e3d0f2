#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <vector>

#include "client/claim.hpp"
#include "client/endpoint.hpp"
#include "posix/descriptor.hpp"

namespace monolock::detail {

// One round over the endpoints of an address, one after the other, within one time limit: each gets
// an equal part of what is left, and what a quick refusal does not use goes to the rest. Never
// blocks. Whoever drives it watches fd() for writability and calls again at wakeup(); both change
// with each call.
class connector {
public:
    enum class status { pending, connected, failed };

    // `endpoints` is not empty.
    connector(std::vector<endpoint> endpoints, std::optional<endpoint> local,
              std::chrono::nanoseconds limit);

    [[nodiscard]] status start(claim_time now);
    // fd() became writable, or wakeup() has come; calling it too early is harmless.
    [[nodiscard]] status proceed(claim_time now);

    // While pending; -1 while it waits for the time to try a busy Unix socket again.
    [[nodiscard]] int fd() const noexcept { return retry_at_ ? -1 : socket_.get(); }
    [[nodiscard]] claim_time wakeup() const noexcept { return retry_at_.value_or(share_end_); }

    // After connected.
    [[nodiscard]] posix::descriptor take_socket() noexcept { return std::move(socket_); }
    // After failed: what the last endpoint came to.
    [[nodiscard]] std::error_code error() const noexcept { return error_; }

private:
    [[nodiscard]] status try_endpoints(claim_time now);
    [[nodiscard]] status open_and_connect(claim_time now);
    [[nodiscard]] status check_progress();
    [[nodiscard]] status refuse(std::error_code why) noexcept;
    [[nodiscard]] std::error_code open_socket();

    std::vector<endpoint> endpoints_;
    std::optional<endpoint> local_;
    std::chrono::nanoseconds limit_;
    claim_time end_;
    std::size_t at_ = 0;  // the endpoint being tried
    claim_time share_end_;
    std::optional<claim_time> retry_at_;
    posix::descriptor socket_;
    std::error_code error_;
};

}  // namespace monolock::detail
