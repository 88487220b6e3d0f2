#pragma once

#include <span>

#include "web/embedded_file.hpp"

namespace monolock::web {

// What the operator's page and the audit report share, modules without imports: names.js shows
// names of strangers; timeline.js draws the ownership of a lock over time, its head says what it
// takes, and timeline.css has its colours and shapes.
[[nodiscard]] std::span<const embedded_file> shared_files() noexcept;

}  // namespace monolock::web
