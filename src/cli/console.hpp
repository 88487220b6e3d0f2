#pragma once

#include <chrono>
#include <string_view>

namespace monolock::cli {

// "monolockctl: TEXT" as one line on standard error, in one write so that lines of several
// processes do not mix. Whether it could be written: a reader that takes nothing is waited for, but
// only so long, because work on which a lock depends may come next.
bool complain(std::string_view text,
              std::chrono::milliseconds patience = std::chrono::seconds{1}) noexcept;

// To standard output; false if not all of it could be written.
[[nodiscard]] bool print(std::string_view text) noexcept;

// Complains that standard output could not be written; the exit status for that.
[[nodiscard]] int output_failed() noexcept;

// Prints. The exit status: `status`, or that of output_failed().
[[nodiscard]] int print_result(std::string_view text, int status = 0) noexcept;

// Once the command runs, its standard input and output are its own: a pipe must see its end when
// the command closes it, so the processes around it let go.
void let_go_of_standard_input_and_output() noexcept;

}  // namespace monolock::cli
