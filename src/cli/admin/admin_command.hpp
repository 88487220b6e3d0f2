#pragma once

#include <span>

#include "config/options.hpp"

namespace monolock::cli {

// `monolockctl locks`, `show`, `release`, `kick` and `info`: the words from the command on; the
// exit status. There must be no other thread.
[[nodiscard]] int run_admin(std::span<const char* const> words,
                            const config::environment& variables);

}  // namespace monolock::cli
