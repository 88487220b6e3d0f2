#include "client/call.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "protocol/heartbeat_schedule.hpp"
#include "protocol/lock_name.hpp"

namespace monolock::detail {

namespace {

// How far apart a rotation may replace a certificate and its key.
constexpr std::chrono::milliseconds rotation_gap{50};

std::optional<errc> check_input(std::string_view name, std::chrono::milliseconds lease) {
    const auto wrong = protocol::check_lock_name(name);
    if (wrong == protocol::error_code::empty_lock_name) {
        return errc::empty_name;
    }
    if (wrong == protocol::error_code::lock_name_too_long) {
        return errc::name_too_long;
    }
    if (wrong) {
        return errc::name_not_utf8;
    }
    if (lease < protocol::lease_min || lease > protocol::lease_max) {
        return errc::lease_out_of_range;
    }
    return std::nullopt;
}

}  // namespace

failure refusal(errc code, stage at) {
    return {.code = make_error_code(code), .at = at, .detail = {}, .admitted = false};
}

failure in_other_process(stage at) {
    return {.code = make_error_code(errc::other_process), .at = at, .detail = {}, .admitted = true};
}

std::variant<claim_request, errc> make_request(std::string_view name,
                                               std::chrono::milliseconds lease, const manner& how) {
    if (const auto wrong = check_input(name, lease)) {
        return *wrong;
    }
    claim_request request{.name = std::string{name},
                          .lease = lease,
                          .queue = how.queue,
                          .give_up = std::nullopt,
                          .pace = how.pace};
    if (how.wait) {
        if (*how.wait <= std::chrono::nanoseconds{0}) {
            return errc::wait_expired;
        }
        const auto now = clock_reading();
        request.give_up = now + std::min(*how.wait, claim_time::max() - now);
    }
    return request;
}

std::variant<tls::context, failure> load_files(tls::client_context_source& from,
                                               const std::stop_token& stop) {
    auto loaded = from.current();
    if (!loaded && pause(rotation_gap, stop)) {
        loaded = from.current();
    }
    if (loaded) {
        return *std::move(loaded);
    }
    if (stop.stop_requested()) {
        return refusal(errc::stopped);
    }
    failure why = refusal(errc::tls_files);
    why.detail = config::joined(loaded.error());
    return why;
}

// Whatever kept us from connecting counts, a dialer's own codes included, but not what will be as
// wrong the next time.
bool is_worth_another_try(const failure& why) {
    if (why.code == make_error_code(errc::stopped) ||
        why.code == make_error_code(errc::wait_expired) || is_permanent(why)) {
        return false;
    }
    return why.code == condition::retryable || why.at == stage::connecting;
}

bool pause(std::chrono::nanoseconds delay, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock held{mutex};
    never.wait_for(held, stop, delay, [] { return false; });
    return !stop.stop_requested();
}

std::chrono::nanoseconds retry_delays::next(const failure& last) {
    return delays_.next({.admitted = last.admitted,
                         .shutting_down = last.code == make_error_code(errc::server_shutting_down)},
                        uniform_(random_));
}

}  // namespace monolock::detail
