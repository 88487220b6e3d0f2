#pragma once

#include <cstddef>

namespace monolock::test {

// What operator new has given out in this process. For programs of one test: GoogleTest allocates,
// too. One thread.
struct heap_use {
    std::size_t allocations = 0;
    std::size_t largest = 0;  // of them, in bytes
    std::size_t in_use = 0;   // bytes that were not given back yet
};

// Whoever links this has its operators new and delete replaced by those that count.
[[nodiscard]] heap_use& counted_heap() noexcept;

}  // namespace monolock::test
