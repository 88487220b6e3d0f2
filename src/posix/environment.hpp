#pragma once

#include <cstdlib>
#include <string_view>

namespace monolock::posix {

// The value of an environment variable; empty if there is none. Nobody may change the environment
// meanwhile.
[[nodiscard]] inline std::string_view variable(const char* name) noexcept {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view{} : value;
}

}  // namespace monolock::posix
