#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <system_error>

#include "monolock/monolock.hpp"
#include "scripted_server.hpp"

namespace monolock::testing {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// The case allows so much between a cause and its effect. For expect_timely(): a busy machine may
// take longer.
inline constexpr milliseconds prompt{50};
// At once, where no case names a time: far from every lease and timeout that could be the cause
// instead.
inline constexpr milliseconds soon{500};

[[nodiscard]] inline client make_client(const std::string& address) {
    client_options options;
    options.address = address;
    return client{std::move(options)};
}

// Runs a call of the library on a thread of its own while the test plays the server.
template <class Call>
[[nodiscard]] auto in_background(Call call) {
    return std::async(std::launch::async, std::move(call));
}

// The code that the call throws, or none.
template <class Call>
[[nodiscard]] std::error_code code_of(const Call& call) {
    try {
        call();
    } catch (const error& failed) {
        return failed.code();
    }
    return {};
}

// A case with exact times may fail for the machine's reasons: it is given twice more. `attempt`
// says what was wrong, or nothing.
inline void expect_timely(const std::function<std::string()>& attempt) {
    std::string wrong;
    for (int round = 0; round < 3; ++round) {
        wrong = attempt();
        if (wrong.empty()) {
            return;
        }
    }
    ADD_FAILURE() << "three times, at last: " << wrong;
}

[[nodiscard]] inline std::string milliseconds_text(boot_clock::duration time) {
    return std::to_string(std::chrono::duration<double, std::milli>(time).count()) + " ms";
}

}  // namespace monolock::testing
