#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "history/event.hpp"

namespace monolock::history {

// What several processes have written, together: events in the order of their times.
struct recording {
    bool has_setup = false;
    std::string scenario{};
    std::uint64_t seed = 0;
    settings limits{};
    std::vector<std::string> lock_names{};
    std::vector<event> events{};
    std::size_t torn_lines = 0;  // without a newline: their writer was killed
};

// A line as a process writes it, with its newline: a JSON object with exactly the keys that the
// kind has, times in nanoseconds. `lock_name` is used if the kind has one.
[[nodiscard]] std::string to_line(const event& what, std::string_view lock_name = {});

// Says "file:line: what is wrong".
class malformed : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Reads the files of one history, one after the other. One line of all of them is the setup:
//
//     {"kind":"setup","scenario":"lossy","seed":1,"handover_ms":50,"slack_ms":50,"served_ms":8000,
//      "causes_noted":true,"faults_noted":true}                                   (on one line)
class recording_reader {
public:
    // The whole text of a file. Throws malformed at the first line that is not exactly as to_line()
    // writes it: an unknown, missing or doubled key, another type, a number out of range. A last
    // line without a newline is not read but counted.
    void read(std::string_view text, std::string_view file_name);

    // Events of one time stay in the order in which they were read.
    [[nodiscard]] recording take();

private:
    void read_line(std::string_view line);
    [[nodiscard]] std::uint32_t number_of(const std::string& lock_name);

    recording read_;
};

}  // namespace monolock::history
