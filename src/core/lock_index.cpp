#include "core/lock_index.hpp"

#include <new>
#include <numeric>

#include "core/assert.hpp"

namespace monolock::core {

// Bits that shard_of() does not use, nor a table: it places a name by the highest bits and tells
// its neighbours apart by the lowest eight.
std::size_t lock_index::table_of(name_hash hash) noexcept {
    static_assert(tables == 1U << 8U);
    return (hash.value >> 32U) & 0xFFU;
}

named_lock* lock_index::find(std::string_view name, name_hash hash) const noexcept {
    const table& in = tables_[table_of(hash)];
    const auto found = in.find(name_view{.name = name, .hash = hash});
    return found == in.end() ? nullptr : *found;
}

void lock_index::insert(named_lock& lock) {
    const bool is_new = tables_[table_of(lock.hash)].insert(&lock).second;
    MONOLOCK_ASSERT(is_new);
}

// A table that holds less than an eighth of what it has room for shrinks to twice what it holds, so
// that it takes many more locks that come or go before it does so again. One that is empty gives
// all back: kept, and spread among the sessions of a crowd, such tables would hold the pages of the
// crowd when it has left. Without memory for the smaller one it stays as it is.
void lock_index::shrink_if_sparse(table& one) noexcept {
    constexpr std::size_t least_room = 32;  // no table with locks has less
    const bool is_sparse = one.bucket_count() > least_room && one.size() < one.bucket_count() / 8;
    if (!is_sparse && !one.empty()) {
        return;
    }
    try {
        one.rehash(2 * one.size());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as good, only larger
    }
}

void lock_index::erase(const named_lock& lock) noexcept {
    table& in = tables_[table_of(lock.hash)];
    const auto found = in.find(name_view{.name = lock.name, .hash = lock.hash});
    MONOLOCK_ASSERT(found != in.end());
    in.erase(found);
    shrink_if_sparse(in);
}

std::size_t lock_index::size() const noexcept {
    return std::accumulate(tables_.begin(), tables_.end(), std::size_t{0},
                           [](std::size_t sum, const table& each) { return sum + each.size(); });
}

}  // namespace monolock::core
