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

void print_time(std::ostream& out, sim_time when) {
    out << when.count() / 1'000'000 << '.' << std::setfill('0') << std::setw(6)
        << when.count() % 1'000'000 << std::setfill(' ') << " ms";
}

// Not what a signal handler may do in general. This signal comes from abort() in the thread that
// runs the simulation, between two calls of ours, and the program ends here.
void on_abort(int /*signal*/) {
    if (const journal* const log = journal::current()) {
        log->fail(log->checking_table() ? "table_invariants" : "core_assertion",
                  "the assertion above failed");
    }
}

}  // namespace

journal::journal(std::uint64_t seed, const event_queue& events, bool print_all) noexcept
    : seed_{seed}, events_{&events}, print_all_{print_all} {}

journal*& journal::current() noexcept {
    thread_local journal* log = nullptr;
    return log;
}

void journal::keep(const line& what) {
    if (print_all_) {
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

void journal::fail(std::string_view invariant, const std::string& how) const {
    // Never unlocked: the first failure is the one that is reported.
    reporting().lock();
    std::ostream& out = std::cout;
    if (!print_all_) {
        for (std::size_t at = count_ - std::min(count_, kept_max); at < count_; ++at) {
            print(out, lines_[at % kept_max]);
        }
    }
    out << "\nseed " << seed_ << ", step " << events_->step() << ", at ";
    print_time(out, events_->now());
    out << "\nbroken invariant: " << invariant << "\n  " << how
        << "\nrun again with: simulate --seed " << seed_ << " --seeds 1 --trace\n"
        << std::flush;
    std::_Exit(1);
}

void report_assertions() {
    static_cast<void>(std::signal(SIGABRT, on_abort));
}

}  // namespace monolock::simulation
