#include "simulation/journal.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <mutex>

namespace monolock::simulation {

namespace {

std::mutex& reporting() {
    static std::mutex only_one;
    return only_one;
}

std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) noexcept {
    digest = (digest ^ word) * 0x9E3779B97F4A7C15U;
    return digest ^ (digest >> 32U);
}

void print_time(std::ostream& out, sim_time when) {
    out << when.count() / 1'000'000 << '.' << std::setfill('0') << std::setw(6)
        << when.count() % 1'000'000 << std::setfill(' ') << " ms";
}

// Not what a signal handler may do in general. This signal comes from abort() in the thread that
// runs the simulation, between two calls of ours, and the program ends here.
void on_abort(int /*signal*/) {
    if (const journal* const log = journal::current()) {
        log->fail(log->checking_table() ? rule::table_invariants : rule::core_assertion,
                  "the assertion above failed");
    }
}

}  // namespace

journal::journal(const run_request& what, const event_queue& events) noexcept
    : what_{what}, events_{&events}, digest_{mixed(0, what.seed)} {}

journal*& journal::current() noexcept {
    thread_local journal* log = nullptr;
    return log;
}

// The text by its characters: where the linker put it is no business of the run's.
void journal::add_to_digest(const line& what) noexcept {
    digest_ = mixed(digest_, static_cast<std::uint64_t>(what.at.count()));
    digest_ = mixed(digest_, what.step);
    digest_ = mixed(digest_, static_cast<std::uint64_t>(what.who.number));
    for (const char* const text : {what.who.kind, what.text}) {
        for (const char* at = text; *at != 0; ++at) {
            digest_ = mixed(digest_, static_cast<unsigned char>(*at));
        }
    }
    for (const std::int64_t value : what.values) {
        digest_ = mixed(digest_, static_cast<std::uint64_t>(value));
    }
}

void journal::keep(const line& what) {
    add_to_digest(what);
    if (what_.trace) {
        print(std::cout, what);
    }
    lines_[count_++ % kept_max] = what;
}

void journal::print(std::ostream& out, const line& what) {
    out << '[' << std::setw(6) << what.step << "] ";
    print_time(out << std::setw(8), what.at);
    out << "  " << what.who.kind;
    if (what.who.number >= 0) {
        out << ' ' << what.who.number;
    }
    out << ": ";
    std::string_view text = what.text;
    for (const std::int64_t value : what.values) {
        const std::size_t gap = text.find("{}");
        if (gap == std::string_view::npos) {
            break;
        }
        out << text.substr(0, gap) << value;
        text.remove_prefix(gap + 2);
    }
    out << text << '\n';
}

void journal::fail(std::string_view broken, const std::string& how) const {
    // Never unlocked: the first failure is the one that is reported.
    reporting().lock();
    std::ostream& out = std::cout;
    if (!what_.trace) {
        for (std::size_t at = count_ - std::min(count_, kept_max); at < count_; ++at) {
            print(out, lines_[at % kept_max]);
        }
    }
    out << "\nseed " << what_.seed << ", step " << events_->step() << ", at ";
    print_time(out, events_->now());
    out << "\nbroken invariant: " << broken << "\n  " << how
        << "\nrun again with: " << command_of(what_) << '\n'
        << std::flush;
    std::_Exit(1);
}

// Of another kind of swarm the same seed draws another world.
std::string command_of(const run_request& what) {
    return std::string{what.program} + " --seed " + std::to_string(what.seed) + " --seeds 1" +
           (what.kind == swarm_kind::standard ? " --swarm standard" : "") + " --trace";
}

void report_assertions() {
    static_cast<void>(std::signal(SIGABRT, on_abort));
}

}  // namespace monolock::simulation
