#pragma once

#include "config/program_shape.hpp"

namespace monolock::cli {

// The command line of monolockctl as data: every command that it knows.
[[nodiscard]] config::program_shape shape();

}  // namespace monolock::cli
