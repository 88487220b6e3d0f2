#pragma once

#include <span>

#include "web/embedded_file.hpp"

namespace monolock::web {

// What draws the ownership of a lock over time in a browser: timeline.js, a module without imports
// whose head says what it takes, and timeline.css, its colours and shapes.
[[nodiscard]] std::span<const embedded_file> timeline_files() noexcept;

}  // namespace monolock::web
