#pragma once

#include <string_view>

namespace monolock::cli {

// "monolockctl: TEXT" as one line on standard error, in one write so that lines of several
// processes do not mix. Failure to write is ignored: there is nowhere to say so.
void complain(std::string_view text) noexcept;

// To standard output; false if not all of it could be written.
[[nodiscard]] bool print(std::string_view text) noexcept;

// Opens /dev/null in place of standard descriptors that were closed at the start, so that no later
// descriptor gets their number. Close-on-exec: the command finds them closed as before.
void fill_standard_descriptors() noexcept;

// Once the command runs, its standard input and output are its own: a pipe must see its end when
// the command closes it, so the processes around it let go.
void let_go_of_standard_input_and_output() noexcept;

}  // namespace monolock::cli
