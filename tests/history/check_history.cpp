// check_history FILE…: reads the files of one history (recording.hpp) and holds it to every
// invariant (check.hpp).
//
// Prints what was checked and each violation with its two events. Ends with 0 if there is none, 1
// if something happened that must never happen, 3 if something was only late, 2 if a file cannot be
// read or none of them has the setup.

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "history/check.hpp"
#include "history/recording.hpp"

namespace monolock::history {

namespace {

std::string text_of(const event& what, const recording& from) {
    const std::string_view lock =
        what.lock < from.lock_names.size() ? from.lock_names[what.lock] : std::string_view{};
    std::string line = to_line(what, lock);
    line.pop_back();
    return line;
}

void print_span(std::string_view name, std::optional<instant> span) {
    std::cout << "  " << std::left << std::setw(24) << name << std::right << std::setw(14)
              << (span ? milliseconds_text(*span) : "-") << '\n';
}

void print(const recording& from, const report& made) {
    std::cout << "scenario " << from.scenario << ", seed " << from.seed << ": "
              << from.events.size() << " events, " << made.claims << " claims, " << made.grants
              << " grants, " << made.losses << " owners lost, " << from.torn_lines
              << " torn lines\n";
    print_span("slowest handover", made.handover_max);
    print_span("grant past a lease", made.silence_max);
    std::cout << "  " << std::left << std::setw(24) << "invariant" << std::right << std::setw(10)
              << "checked" << std::setw(13) << "passed over" << std::setw(8) << "late"
              << std::setw(12) << "violations" << '\n';
    for (std::size_t at = 0; at < invariants; ++at) {
        const auto what = static_cast<invariant>(at);
        const tally& counts = made.of(what);
        std::cout << "  " << std::left << std::setw(24) << to_string(what) << std::right
                  << std::setw(10) << counts.checked << std::setw(13) << counts.passed_over
                  << std::setw(8) << counts.late << std::setw(12) << counts.violations << '\n';
    }
    for (const violation& one : made.violations()) {
        std::cout << (one.how_bad == severity::late ? "late " : "violation ")
                  << to_string(one.broken) << ": " << one.how << "\n    "
                  << text_of(one.first, from) << "\n    " << text_of(one.second, from) << '\n';
    }
}

// Nothing, or what was wrong.
std::string read_into(recording_reader& reader, const char* path) {
    std::ifstream file{path, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (!file.is_open() || file.bad()) {
        return std::string{path} + ": " + std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
    }
    try {
        reader.read(text, path);
    } catch (const malformed& why) {
        return why.what();
    }
    return {};
}

int run(int count, char** paths) {
    if (count == 0) {
        std::cerr << "usage: check_history FILE…\n";
        return 2;
    }
    recording_reader reader;
    for (int at = 0; at < count; ++at) {
        if (const std::string wrong = read_into(reader, paths[at]); !wrong.empty()) {
            std::cerr << "check_history: " << wrong << '\n';
            return 2;
        }
    }
    const recording read = reader.take();
    if (!read.has_setup) {
        std::cerr << "check_history: no setup in what was read\n";
        return 2;
    }
    const report made = check(read.events, read.limits);
    print(read, made);
    if (made.count(severity::unsafe) != 0) {
        return 1;
    }
    return made.count(severity::late) != 0 ? 3 : 0;
}

}  // namespace

}  // namespace monolock::history

int main(int argc, char** argv) {
    return monolock::history::run(argc - 1, argv + 1);
}
