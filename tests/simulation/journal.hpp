#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "simulation/event_queue.hpp"
#include "simulation/rule.hpp"
#include "simulation/swarm.hpp"

namespace monolock::simulation {

struct actor {
    const char* kind = "world";
    int number = -1;  // below zero: there is only one
};

// What happened, for people: the last lines are kept and printed when a rule is broken. A line is
// kept as its parts and put together only when it is read, because nearly none is.
class journal {
public:
    journal(const run_request& what, const event_queue& events) noexcept;

    // The number of the current run's journal, for the handler of a failed assertion; one per
    // thread.
    [[nodiscard]] static journal*& current() noexcept;

    // `text` must live for ever; each "{}" in it stands for the next value.
    template <typename... Values>
    void note(actor who, const char* text, Values... values) {
        static_assert(sizeof...(Values) <= values_max);
        keep({.at = events_->now(),
              .step = events_->step(),
              .who = who,
              .text = text,
              .values = {static_cast<std::int64_t>(values)...}});
    }

    // Prints seed, step, time, the invariant's name and the last lines, and ends the program with
    // status 1.
    [[noreturn]] void fail(std::string_view broken, const std::string& how) const;
    [[noreturn]] void fail(rule broken, const std::string& how) const {
        fail(name_of(broken), how);
    }

    // Of every line so far. Two runs that did the same have the same.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }

    // While the table checks itself its assertions are reported under that name.
    void checking_table(bool now_it_does) noexcept { checking_table_ = now_it_does; }
    [[nodiscard]] bool checking_table() const noexcept { return checking_table_; }

private:
    static constexpr std::size_t values_max = 4;
    static constexpr std::size_t kept_max = 128;

    struct line {
        sim_time at{0};
        std::uint64_t step = 0;
        actor who;
        const char* text = nullptr;
        std::array<std::int64_t, values_max> values{};
    };

    void keep(const line& what);
    void add_to_digest(const line& what) noexcept;
    static void print(std::ostream& out, const line& what);

    run_request what_;
    const event_queue* events_;
    std::uint64_t digest_;
    bool checking_table_ = false;
    std::array<line, kept_max> lines_;
    std::size_t count_ = 0;
};

// What shows that run again, with all that happens in it.
[[nodiscard]] std::string command_of(const run_request& what);

// Turns an abort by a failed assertion of the code under test into the same report.
void report_assertions();

}  // namespace monolock::simulation
