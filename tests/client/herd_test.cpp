// Case C12: many retrying clients and a server that goes away and comes back.

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "honest_server.hpp"
#include "support.hpp"

namespace monolock::testing {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int clients = 200;  // the sanitizers make a thousand threads dear
#else
constexpr int clients = 1000;
#endif

// When each client tried again after the server went, by the number of the attempt.
class attempt_log {
public:
    void start() {
        const std::scoped_lock held{mutex_};
        counting_ = true;
    }

    void note(std::string_view client) {
        const std::scoped_lock held{mutex_};
        if (!counting_) {
            return;
        }
        const std::size_t attempt = attempts_[std::string{client}]++;
        if (waves_.size() <= attempt) {
            waves_.resize(attempt + 1);
        }
        waves_[attempt].push_back(boot_clock::now());
    }

    // What is wrong with the spread, or nothing.
    std::string judge() {
        const std::scoped_lock held{mutex_};
        for (std::size_t wave = 0; wave < waves_.size(); ++wave) {
            const auto& times = waves_[wave];
            if (times.size() < clients / 2) {
                continue;  // the tail of those who were late
            }
            const auto [first, last] = std::minmax_element(times.begin(), times.end());
            std::array<std::size_t, 10> tenths{};
            for (const auto when : times) {
                const auto tenth = (when - *first) * 10 / std::max(*last - *first, 1ns);
                ++tenths.at(static_cast<std::size_t>(std::min<std::int64_t>(tenth, 9)));
            }
            const auto most = *std::max_element(tenths.begin(), tenths.end());
            if (most * 5 > times.size()) {
                return "wave " + std::to_string(wave) + ": " + std::to_string(most) + " of " +
                       std::to_string(times.size()) + " attempts in a tenth of its span";
            }
        }
        return waves_.size() < 3 ? "too few waves to judge" : std::string{};
    }

private:
    std::mutex mutex_;
    bool counting_ = false;
    std::map<std::string, std::size_t> attempts_;
    std::vector<std::vector<boot_clock::time_point>> waves_;
};

// A thousand waiters, each on a lock of its own, lose the server for a second.
std::string restart_under_a_herd() {
    honest_server server;
    server.withhold_grants(true);
    attempt_log log;
    client_options options;
    options.address = server.address();
    options.on_stage = [&](std::string_view name, stage entered) {
        if (entered == stage::connecting) {
            log.note(name);
        }
    };
    client subject{std::move(options)};
    std::atomic<int> served{0};
    std::vector<std::thread> herd;
    herd.reserve(clients);
    for (int number = 0; number < clients; ++number) {
        herd.emplace_back([&, number] {
            subject.with_lock_retry("lock " + std::to_string(number), 60s,
                                    [&](const std::stop_token&, std::uint64_t) { ++served; });
        });
    }
    while (server.queued() < clients) {
        std::this_thread::sleep_for(1ms);
    }
    log.start();
    server.stop();
    std::this_thread::sleep_for(1s);
    server.withhold_grants(false);
    server.start();
    const auto back = boot_clock::now();
    for (auto& member : herd) {
        member.join();
    }
    if (boot_clock::now() - back > 10s) {
        return "served only after " + milliseconds_text(boot_clock::now() - back);
    }
    return served == clients ? log.judge() : "served " + std::to_string(served);
}

TEST(c12_restart_herd, comes_back_spread_out_and_is_served) {
    expect_timely(restart_under_a_herd);
}

}  // namespace
}  // namespace monolock::testing
