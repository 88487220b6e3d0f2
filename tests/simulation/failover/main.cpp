// simulate_failover: runs simulated worlds of two or three servers and one etcd, one a seed, and
// prints totals; `usage` has the options. Ends with status 1 and a report at the first broken rule.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/role.hpp"
#include "simulation/command_line.hpp"
#include "simulation/failover/rule.hpp"
#include "simulation/failover/swarm.hpp"
#include "simulation/journal.hpp"

namespace monolock::simulation::failover {

namespace {

constexpr std::string_view usage =
    "usage: simulate_failover [OPTIONS]\n"
    "  --seed N       the first seed (1)\n"
    "  --seeds M      how many (1000)\n"
    "  --jobs J       threads (1); the totals do not depend on it\n"
    "  --scaled       run M times MONOLOCK_TEST_SCALE, for tests under a sanitizer\n"
    "  --trace        print everything that happens, one thread\n"
    "  --rules        list the rules, and run nothing\n";

struct options {
    std::uint64_t seed = 1;
    std::uint64_t seeds = 1000;
    unsigned jobs = 1;
    bool scaled = false;
    bool trace = false;
    bool rules = false;
};

// Empty, or what is wrong with the words.
std::string parse(const std::vector<std::string_view>& words, options& into) {
    const std::string wrong =
        read_words(words, {with_value("--seed", read_number<std::uint64_t>, into.seed),
                           with_value("--seeds", read_count<std::uint64_t>, into.seeds),
                           with_value("--jobs", read_jobs, into.jobs),
                           {.name = "--scaled", .flag = &into.scaled},
                           {.name = "--trace", .flag = &into.trace},
                           {.name = "--rules", .flag = &into.rules}});
    if (into.trace) {
        into.jobs = 1;
    }
    return wrong.empty() && into.scaled ? scale(into.seeds) : wrong;
}

tally run_all(const options& chosen) {
    std::atomic<std::uint64_t> next{0};
    return on_threads<tally>(chosen.jobs, [&](tally& mine, bool) {
        for (std::uint64_t at = next++; at < chosen.seeds; at = next++) {
            run({.seed = chosen.seed + at, .trace = chosen.trace}, mine);
        }
    });
}

void line(std::string_view name, std::uint64_t value) {
    print_count(46, name, value);
}

void print(const options& chosen, const tally& sum, std::chrono::duration<double> took) {
    std::cout << "simulated " << sum.seeds << " seeds from " << chosen.seed
              << " on, no rule broken\n";
    line("steps", sum.steps);
    line("times that a server opened", sum.failovers);
    line("  of them less than a TTL after winning", sum.before_a_ttl);
    line("  of them less than a quarter of it", sum.at_once);
    line("grants checked", sum.grants);
    line("answers checked", sum.answers);
    line("messages not answered: the mandate was over", sum.refused);
    line("transactions of the chain carried out", sum.transactions);
    line("  of them not, as an answer was lost before", sum.recovered);
    line("calls to the store given up", sum.unanswered);
    line("  carried out after that", sum.applied_late);
    for (std::size_t why = 0; why < sum.losses.size(); ++why) {
        std::cout << "  stepped down: ";
        std::cout << std::left << std::setw(32)
                  << coordination::to_string(static_cast<coordination::loss>(why)) << std::right
                  << std::setw(12) << sum.losses.at(why) << '\n';
    }
    line("owners that believed on when it did", sum.beliefs_outlived);
    line("tries to grant that met the ceiling", sum.raises_awaited);
    line("tries to grant that met the longest lease", sum.leases_awaited);
    line("times that the longest lease was lowered", sum.lowered);
    line("stops within a turn", sum.stops);
    std::cout << "faults that had an effect\n";
    for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
        line(to_string(static_cast<fault>(kind)), sum.faults.at(kind));
    }
    print_end(sum.digest, sum.simulated, took, chosen.jobs);
}

}  // namespace

}  // namespace monolock::simulation::failover

int main(int argc, char** argv) {
    namespace failover = monolock::simulation::failover;
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    failover::options chosen;
    if (const std::string wrong = failover::parse(words, chosen); !wrong.empty()) {
        return monolock::simulation::show_usage("simulate_failover", failover::usage, words, wrong);
    }
    if (chosen.rules) {
        monolock::simulation::print_rules(28, failover::invariants);
        return monolock::simulation::end_of_output();
    }
    monolock::simulation::report_assertions();
    const auto started = std::chrono::steady_clock::now();
    const failover::tally sum = failover::run_all(chosen);
    failover::print(chosen, sum, std::chrono::steady_clock::now() - started);
    return monolock::simulation::end_of_output();
}
