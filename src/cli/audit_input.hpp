#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "posix/descriptor.hpp"
#include "telemetry/line_splitter.hpp"

namespace monolock::cli {

// A file, or standard input as "-", read block by block. What goes wrong is a std::system_error
// that names the file.
class audit_input {
public:
    explicit audit_input(std::string path);

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    // The next block; empty at the end, where later calls may find more. Valid until the next call.
    [[nodiscard]] std::string_view read();

    // Whether the file may grow while it is read: it is no pipe.
    [[nodiscard]] bool is_regular() const;
    // Whether `path` names this file still.
    [[nodiscard]] bool is_in_place() const;
    // Whether anything was written to it; taken for granted of a pipe.
    [[nodiscard]] bool is_begun() const;
    // If the file is shorter than what was read of it, goes back, past the last `unfinished` bytes
    // at least; false if it is not. If it is no shorter than those bytes, they were a line that was
    // taken back, as the server does while the disk is full. Else the file begins anew.
    [[nodiscard]] bool goes_back(std::size_t unfinished);
    // Moves to where the last so many lines begin. Only a regular file. A last line without its
    // newline is one of them, or is none yet and stands behind them.
    enum class unfinished_line { counts, stands_behind };
    void seek_lines_before_end(std::size_t lines, unfinished_line last);

private:
    [[noreturn]] void fail() const;

    std::string path_;
    posix::descriptor owned_;  // none for standard input
    int fd_ = 0;               // standard input
    std::vector<char> block_;
};

// Calls `each` with every line of the files, one after the other, without its newline; also with
// what stands behind the last one. Throws as audit_input does.
template <class Each>
void for_each_line(const std::vector<std::string>& files, Each each) {
    for (const std::string& file : files) {
        audit_input input{file};
        telemetry::line_splitter lines;
        for (auto block = input.read(); !block.empty(); block = input.read()) {
            lines.feed(block, [&each](std::string_view line) {
                each(line);
                return true;
            });
        }
        if (!lines.rest().empty()) {
            each(lines.rest());
        }
    }
}

}  // namespace monolock::cli
