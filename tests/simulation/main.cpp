// simulate: runs simulated worlds, one a seed, and prints totals; `usage` has the options. Ends
// with status 1 and a report at the first broken rule.

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/session.hpp"
#include "simulation/command_line.hpp"
#include "simulation/journal.hpp"
#include "simulation/rule.hpp"
#include "simulation/runner.hpp"

namespace monolock::simulation {

namespace {

constexpr std::string_view usage =
    "usage: simulate [OPTIONS]\n"
    "  --seed N       the first seed (1)\n"
    "  --seeds M      how many (2000)\n"
    "  --seconds S    and none begins later than that (no limit)\n"
    "  --swarm KIND   drawn: all from the seed (the default); standard: 8 clients, 3 locks, "
    "leases\n"
    "                 of 50 ms to 10 s in each run, and the rest from the seed\n"
    "  --jobs J       threads (1); the totals do not depend on it\n"
    "  --progress S   say on stderr how far it is, each S seconds\n"
    "  --scaled       run M times MONOLOCK_TEST_SCALE, for tests under a sanitizer\n"
    "  --trace        print everything that happens, one thread\n"
    "  --rules        list the rules, and run nothing\n";

struct options {
    run_plan plan;
    bool scaled = false;
    bool rules = false;
};

bool read_seconds(std::string_view text, std::chrono::seconds& into) {
    std::uint32_t number = 0;
    const bool good = read_number(text, number);
    into = std::chrono::seconds{number};
    return good;
}

bool read_kind(std::string_view text, swarm_kind& into) {
    into = text == "standard" ? swarm_kind::standard : swarm_kind::drawn;
    return text == "standard" || text == "drawn";
}

// Empty, or what is wrong with the words.
std::string parse(const std::vector<std::string_view>& words, options& into) {
    run_plan& plan = into.plan;
    const std::string wrong =
        read_words(words, {with_value("--seed", read_number<std::uint64_t>, plan.seed),
                           with_value("--seeds", read_count<std::uint64_t>, plan.seeds),
                           with_value("--seconds", read_seconds, plan.time_max),
                           with_value("--swarm", read_kind, plan.kind),
                           with_value("--jobs", read_jobs, plan.jobs),
                           with_value("--progress", read_seconds, plan.progress),
                           {.name = "--scaled", .flag = &into.scaled},
                           {.name = "--trace", .flag = &plan.trace},
                           {.name = "--rules", .flag = &into.rules}});
    return wrong.empty() && into.scaled ? scale(plan.seeds) : wrong;
}

void line(std::string_view name, std::uint64_t value) {
    print_count(38, name, value);
}

void print_counts(const tally& sum) {
    line("steps, each checked", sum.steps);
    line("connections", sum.connections);
    line("runs with several shards", sum.runs_with_shards);
    line("claims moved to another shard", sum.moves);
    line("grants checked", sum.grants);
    line("  of them promotions", sum.promotions);
    line("tries to grant that got no token", sum.grants_refused);
    line("sessions sent away without a mandate", sum.sent_away);
    line("heartbeats answered", sum.replies);
    for (std::size_t why = 0; why < sum.ends.size(); ++why) {
        line("sessions ended: " + std::string{to_string(static_cast<core::end_reason>(why))},
             sum.ends[why]);
    }
    line("listings checked", sum.listings);
    line("owners ended by an operator", sum.releases_by_operator);
    line("releases refused: the token is stale", sum.stale_releases);
    line("waiters ended by an operator", sum.kicks);
    line("questions given up: a shard stalled", sum.operator_gave_up);
    line("ERRORs due", sum.refusals);
    line("  of them denials", sum.denials);
    line("changes that revoked waiters", sum.sweeps_that_revoked);
    line("claims that nothing may cost any more", sum.quiet_claims);
    line("claims lost by their client", sum.losses);
    line("  of them told why: the cause checked", sum.losses_with_cause);
    line("claims tried again", sum.retries);
    line("steps with an announced loser believing", sum.beliefs_outlived);
    line("writes to the fenced resources", sum.writes);
    line("  of them stale and refused", sum.stale_writes_refused);
    line("runs over a record layer", sum.runs_over_records);
    line("records opened", sum.records_opened);
    line("records half sent for a while", sum.records_half_sent);
    line("reads that left bytes inside", sum.reads_held_back);
    line("fatal alerts read", sum.alerts_read);
}

void print_faults(const tally& sum) {
    std::cout << "faults that had an effect\n";
    line("server stopped within a turn", sum.server_stops);
    line("client stopped within a turn", sum.client_stops);
    line("accepting failed", sum.accept_failures);
    line("accepting paused", sum.accept_pauses);
    line("slow packets", sum.spikes);
    line("short writes", sum.short_writes);
    line("resets", sum.resets);
    for (std::size_t kind = 0; kind < fault_kinds; ++kind) {
        line(to_string(static_cast<fault>(kind)), sum.faults[kind]);
    }
}

void print(const options& chosen, const tally& sum, std::chrono::duration<double> took) {
    const run_plan& plan = chosen.plan;
    std::cout << "simulated " << sum.seeds << " seeds from " << plan.seed << " on"
              << (plan.kind == swarm_kind::standard ? ", the standard swarm" : "")
              << ", no rule broken\n";
    print_counts(sum);
    print_faults(sum);
    print_end(sum.digest, sum.simulated, took, plan.jobs);
}

}  // namespace

}  // namespace monolock::simulation

int main(int argc, char** argv) {
    using namespace monolock::simulation;  // NOLINT(google-build-using-namespace): main's own
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    options chosen;
    if (const std::string wrong = parse(words, chosen); !wrong.empty()) {
        return show_usage("simulate", usage, words, wrong);
    }
    if (chosen.rules) {
        print_rules(24, invariants);
        return end_of_output();
    }
    report_assertions();
    const auto started = std::chrono::steady_clock::now();
    const tally sum = run_all(chosen.plan);
    print(chosen, sum, std::chrono::steady_clock::now() - started);
    return end_of_output();
}
