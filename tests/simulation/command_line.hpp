#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

// What the programs that simulate have in common: how they read their words, share seeds among
// threads, and print.
namespace monolock::simulation {

// The whole text, in decimal.
template <typename Number>
[[nodiscard]] bool read_number(std::string_view text, Number& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc{} && end == text.data() + text.size();
}

// As above, and at least one.
template <typename Number>
[[nodiscard]] bool read_count(std::string_view text, Number& into) {
    return read_number(text, into) && into > 0;
}

// As above, and no more threads than any machine has use for.
[[nodiscard]] bool read_jobs(std::string_view text, unsigned& into);

// That many times the scale, and at least one, however small it is. Nothing if it is no number, or
// none to multiply by.
[[nodiscard]] std::optional<std::uint64_t> scaled(std::uint64_t seeds, std::string_view scale);

// By MONOLOCK_TEST_SCALE, if there is one: empty, or what is wrong with it.
[[nodiscard]] std::string scale(std::uint64_t& seeds);

// A word that a program knows: a flag, or one that a value follows, with what takes it and says
// whether it is one.
struct option {
    std::string_view name;
    bool* flag = nullptr;
    std::function<bool(std::string_view)> take{};
};
template <class Read, class Value>
[[nodiscard]] option with_value(std::string_view name, Read read, Value& into) {
    return {.name = name,
            .take = [read, &into](std::string_view text) { return read(text, into); }};
}

// Takes the words one after the other: empty, or what is wrong with the first that is.
[[nodiscard]] std::string read_words(const std::vector<std::string_view>& words,
                                     const std::vector<option>& known);

// Prints how the program is used, to who asked for it, or to who got it wrong after what that is:
// the exit status.
[[nodiscard]] int show_usage(std::string_view program, std::string_view usage,
                             const std::vector<std::string_view>& words, std::string_view wrong);

// The exit status of a run whose totals are printed: not 0 if they could not be.
[[nodiscard]] int end_of_output();

// Calls work(tally, is_first) on so many threads at once, at least one, each with a tally of its
// own, the first on this one. What they add up to.
template <class Tally, class Work>
[[nodiscard]] Tally on_threads(unsigned threads, const Work& work) {
    std::vector<Tally> totals(threads);
    {
        std::vector<std::jthread> helpers;
        for (std::size_t job = 1; job < totals.size(); ++job) {
            helpers.emplace_back([&work, &mine = totals[job]] { work(mine, false); });
        }
        work(totals.front(), true);
    }
    Tally sum;
    for (const Tally& one : totals) {
        sum += one;
    }
    return sum;
}

// One line of a table whose names have that width.
void print_count(int width, std::string_view name, std::uint64_t value);

// The last lines: what the journals add up to; and on stderr, since it is another each time, how
// fast it was.
void print_end(std::uint64_t digest, std::chrono::duration<double> simulated,
               std::chrono::duration<double> took, unsigned threads);

// A table of invariants, a line each.
template <class Invariants>
void print_rules(int width, const Invariants& all) {
    for (const auto& each : all) {
        std::cout << std::left << std::setw(width) << each.name << each.promise << '\n';
    }
}

}  // namespace monolock::simulation
