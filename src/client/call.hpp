#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <stop_token>
#include <string_view>
#include <variant>

#include "client/attempt.hpp"
#include "client/backoff.hpp"
#include "client/failure.hpp"
#include "client/target.hpp"
#include "config/parsed.hpp"
#include "tls/client_context.hpp"

namespace monolock::detail {

// What the calls of the client and of the driven client share: input, files, and when to try again.

[[nodiscard]] failure refusal(errc code, stage at = stage::preparing);
// For a claim in a process that did not make it.
[[nodiscard]] failure in_other_process(stage at);

// How to queue, beyond the name and the lease.
struct manner {
    bool queue = true;
    std::optional<std::chrono::nanoseconds> wait{};
    address_round::manner pace = address_round::manner::thorough;
};

// The request, checked; or why nothing is to be sent.
[[nodiscard]] std::variant<claim_request, errc> make_request(std::string_view name,
                                                             std::chrono::milliseconds lease,
                                                             const manner& how);

// The context of the files as they are. What does not fit together is read once more after a
// moment. Blocks; nothing but what is wrong, or nothing but a stop.
[[nodiscard]] std::variant<tls::context, failure> load_files(tls::client_context_source& from,
                                                             const std::stop_token& stop);

// Whether an acquire that repeats goes on after this.
[[nodiscard]] bool is_worth_another_try(const failure& why);

// Blocks for `delay` or until stopped; whether the delay passed whole.
[[nodiscard]] bool pause(std::chrono::nanoseconds delay, const std::stop_token& stop);

// The delays of one acquire that repeats.
class retry_delays {
public:
    explicit retry_delays(const target& to)
        : delays_{to.is_list() ? backoff_max_of_list : backoff_max} {}

    [[nodiscard]] std::chrono::nanoseconds next(const failure& last);

private:
    backoff delays_;
    std::mt19937_64 random_{std::random_device{}()};
    std::uniform_real_distribution<double> uniform_;
};

}  // namespace monolock::detail
