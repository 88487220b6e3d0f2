// simulate --seed N --seeds M [--trace] [--jobs J] [--scaled]
//
// With --scaled M is multiplied by MONOLOCK_TEST_SCALE, for the tests under a sanitizer.
//
// Runs the seeds N to N + M - 1, one simulated world each, and prints totals. Ends with status 1
// and a report at the first broken rule.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/session.hpp"
#include "simulation/journal.hpp"
#include "simulation/world.hpp"

namespace monolock::simulation {

namespace {

constexpr std::string_view usage =
    "usage: simulate [--seed N] [--seeds M] [--jobs J] [--trace] [--scaled]\n"
    "  --seed N   the first seed (1)\n"
    "  --seeds M  how many (2000)\n"
    "  --jobs J   threads (1); the totals do not depend on it\n"
    "  --scaled   run M times MONOLOCK_TEST_SCALE\n"
    "  --trace    print everything that happens, one thread\n";

struct options {
    std::uint64_t seed = 1;
    std::uint64_t seeds = 2000;
    unsigned jobs = 1;
    bool trace = false;
    bool scaled = false;
};

template <typename Number>
bool read_number(std::string_view text, Number& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc{} && end == text.data() + text.size();
}

// At least one, however small the scale.
std::uint64_t scaled(std::uint64_t seeds) {
    const char* const scale = std::getenv("MONOLOCK_TEST_SCALE");  // NOLINT(concurrency-mt-unsafe)
    const double factor = scale == nullptr ? 1.0 : std::strtod(scale, nullptr);
    return std::max<std::uint64_t>(1,
                                   static_cast<std::uint64_t>(static_cast<double>(seeds) * factor));
}

std::optional<options> parse(const std::vector<std::string_view>& words) {
    options chosen;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string_view word = words[at];
        if (word == "--trace") {
            chosen.trace = true;
            continue;
        }
        if (word == "--scaled") {
            chosen.scaled = true;
            continue;
        }
        const std::string_view value = at + 1 < words.size() ? words[++at] : std::string_view{};
        const bool good = word == "--seed"    ? read_number(value, chosen.seed)
                          : word == "--seeds" ? read_number(value, chosen.seeds)
                          : word == "--jobs"  ? read_number(value, chosen.jobs) && chosen.jobs > 0
                                              : false;
        if (!good) {
            return std::nullopt;
        }
    }
    if (chosen.scaled) {
        chosen.seeds = scaled(chosen.seeds);
    }
    return chosen;
}

tally run_all(const options& chosen) {
    const unsigned jobs = chosen.trace ? 1 : chosen.jobs;
    std::vector<tally> totals(jobs);
    std::atomic<std::uint64_t> next{0};
    const auto work = [&](tally& mine) {
        for (std::uint64_t at = next++; at < chosen.seeds; at = next++) {
            run(chosen.seed + at, mine, chosen.trace);
        }
    };
    std::vector<std::jthread> helpers;
    for (unsigned job = 1; job < jobs; ++job) {
        helpers.emplace_back([&work, &mine = totals[job]] { work(mine); });
    }
    work(totals.front());
    helpers.clear();  // joins
    tally sum;
    for (const tally& one : totals) {
        sum += one;
    }
    return sum;
}

void line(std::string_view name, std::uint64_t value) {
    std::cout << "  " << std::left << std::setw(38) << name << std::right << std::setw(12) << value
              << '\n';
}

void print(const tally& sum, std::chrono::duration<double> took) {
    const double simulated = std::chrono::duration<double>(sum.simulated).count();
    std::cout << "simulated " << sum.seeds << " seeds, no rule broken\n";
    line("steps, each checked", sum.steps);
    line("connections", sum.connections);
    line("grants checked", sum.grants);
    line("  of them promotions", sum.promotions);
    line("heartbeats answered", sum.replies);
    for (std::size_t why = 0; why < sum.ends.size(); ++why) {
        line("sessions ended: " + std::string{to_string(static_cast<core::end_reason>(why))},
             sum.ends[why]);
    }
    line("ERRORs due", sum.refusals);
    line("  of them denials", sum.denials);
    line("changes that revoked waiters", sum.sweeps_that_revoked);
    line("claims lost by their client", sum.losses);
    line("claims tried again", sum.retries);
    line("steps with an announced loser believing", sum.beliefs_outlived);
    line("writes to the fenced resources", sum.writes);
    line("  of them stale and refused", sum.stale_writes_refused);
    line("runs over a record layer", sum.runs_over_records);
    line("records opened", sum.records_opened);
    line("records half sent for a while", sum.records_half_sent);
    line("reads that left bytes inside", sum.reads_held_back);
    line("fatal alerts read", sum.alerts_read);
    std::cout << "faults injected\n";
    line("server stopped within a turn", sum.server_stops);
    line("client stopped within a turn", sum.client_stops);
    line("slow packets", sum.spikes);
    line("short writes", sum.short_writes);
    line("resets", sum.resets);
    for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
        line(to_string(static_cast<fault>(kind)), sum.faults[kind]);
    }
    std::cout << std::fixed << std::setprecision(1) << "simulated time " << simulated << " s in "
              << took.count() << " s: " << std::setprecision(0) << simulated / took.count()
              << " times as fast as real time\n";
}

}  // namespace

}  // namespace monolock::simulation

int main(int argc, char** argv) {
    using namespace monolock::simulation;  // NOLINT(google-build-using-namespace): main's own
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    const auto chosen = parse(words);
    if (!chosen) {
        std::cerr << usage;
        return 2;
    }
    report_assertions();
    const auto started = std::chrono::steady_clock::now();
    const tally sum = run_all(*chosen);
    print(sum, std::chrono::steady_clock::now() - started);
    return 0;
}
