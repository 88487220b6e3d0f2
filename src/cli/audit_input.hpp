#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "posix/descriptor.hpp"

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
    // Whether `path` names another file by now, or none.
    [[nodiscard]] bool is_replaced() const;
    // If the file is shorter than what was read of it, begins anew.
    [[nodiscard]] bool begins_anew();
    // Moves to where the last so many lines begin. Only a regular file.
    void seek_lines_before_end(std::size_t lines);

private:
    [[noreturn]] void fail() const;

    std::string path_;
    posix::descriptor owned_;  // none for standard input
    int fd_ = 0;               // standard input
    std::vector<char> block_;
};

}  // namespace monolock::cli
