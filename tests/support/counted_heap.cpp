#include "support/counted_heap.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

monolock::test::heap_use use;

void* count_and_allocate(std::size_t size) {
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) {  // NOLINT(*-no-malloc)
        ++use.allocations;
        use.largest = std::max(use.largest, size);
        use.in_use += ::malloc_usable_size(memory);
        return memory;
    }
    throw std::bad_alloc{};
}

void count_and_free(void* memory) noexcept {
    use.in_use -= ::malloc_usable_size(memory);
    std::free(memory);  // NOLINT(*-no-malloc)
}

}  // namespace

namespace monolock::test {

heap_use& counted_heap() noexcept {
    return use;
}

}  // namespace monolock::test

void* operator new(std::size_t size) {
    return count_and_allocate(size);
}
void* operator new[](std::size_t size) {
    return count_and_allocate(size);
}
void operator delete(void* memory) noexcept {
    count_and_free(memory);
}
void operator delete[](void* memory) noexcept {
    count_and_free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
    count_and_free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
    count_and_free(memory);
}
