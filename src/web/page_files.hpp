#pragma once

#include <span>

#include "web/embedded_file.hpp"

namespace monolock::web {

// The operator's page: index.html, and what it loads from the folder that it is served with. With
// shared_files() beside them they are whole.
[[nodiscard]] std::span<const embedded_file> page_files() noexcept;

}  // namespace monolock::web
