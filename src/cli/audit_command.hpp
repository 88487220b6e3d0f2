#pragma once

#include <span>

namespace monolock::cli {

// `monolockctl audit`: the words after it; the exit status.
[[nodiscard]] int run_audit(std::span<const char* const> words);

}  // namespace monolock::cli
