#include "core/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace monolock::core {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "monolock: broken invariant at %s:%d: %s\n", file, line, condition);
    std::abort();
}

}  // namespace monolock::core
