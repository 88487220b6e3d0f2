#pragma once

#include <string>

#include "config/program_shape.hpp"

namespace monolock::completion {

// Scripts that complete a program's command line in a shell: its commands, its flags, and the
// values and operands that are files, programs or one of a few words. Each stands where its shell
// looks for it (cmake/monolock_install.cmake).
[[nodiscard]] std::string for_bash(const config::program_shape& program);
[[nodiscard]] std::string for_zsh(const config::program_shape& program);
[[nodiscard]] std::string for_fish(const config::program_shape& program);

// For the tests, a line of five columns with tabs between them for each flag: command, flag as the
// program writes it, variable, default, help. Columns may be empty.
[[nodiscard]] std::string list(const config::program_shape& program);

}  // namespace monolock::completion
