#pragma once

#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <string_view>

#include "core/name_hash.hpp"
#include "core/named_lock.hpp"

namespace monolock::core {

// Locks by name. A hash table that grows moves all that it holds in one go, and with a million
// locks everybody's heartbeats would wait for that. So these are many small tables: each grows at a
// moment of its own, and gives memory back when most of its locks are gone. Owns nothing.
class lock_index {
public:
    static constexpr std::size_t tables = 256;

    // Null if there is none. `hash` is the hash of the name.
    [[nodiscard]] named_lock* find(std::string_view name, name_hash hash) const noexcept;
    // A lock whose name is not there yet.
    void insert(named_lock& lock);
    // A lock that is there.
    void erase(const named_lock& lock) noexcept;

    // Goes through all tables: for checks.
    [[nodiscard]] std::size_t size() const noexcept;

private:
    struct name_view {
        std::string_view name;
        name_hash hash;
    };
    struct lock_hash {
        using is_transparent = void;
        using is_avalanching = void;  // SipHash mixes well enough on its own
        std::size_t operator()(const name_view& view) const noexcept { return view.hash.value; }
        std::size_t operator()(const named_lock* lock) const noexcept { return lock->hash.value; }
    };
    struct lock_equal {
        using is_transparent = void;
        static std::string_view name_of(const name_view& view) noexcept { return view.name; }
        static std::string_view name_of(const named_lock* lock) noexcept { return lock->name; }
        bool operator()(const auto& left, const auto& right) const noexcept {
            return name_of(left) == name_of(right);
        }
    };
    using table = boost::unordered_flat_set<named_lock*, lock_hash, lock_equal>;

    [[nodiscard]] static std::size_t table_of(name_hash hash) noexcept;
    static void shrink_if_sparse(table& one) noexcept;

    std::array<table, tables> tables_;
};

}  // namespace monolock::core
