#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace monolock::core {

// The hash of a lock name, computed once when a claim arrives; it chooses the shard and the place
// in the shard's table.
struct name_hash {
    std::uint64_t value = 0;
    friend bool operator==(const name_hash&, const name_hash&) = default;
};

// Names are the outside's choice, so the hash is keyed (SipHash-2-4) with a key that is random per
// process: nobody can prepare names that share a shard or a bucket.
class name_hasher {
public:
    using key = std::array<unsigned char, 16>;

    explicit name_hasher(const key& secret) noexcept : key_{secret} {}

    [[nodiscard]] name_hash operator()(std::string_view name) const noexcept;

private:
    key key_;
};

// Which of `shards` shards owns the name; shards is at least 1. Reads the low half of the hash from
// its top, because the table places a name by the highest bits and tells its neighbours apart by
// the lowest eight: names of one shard still spread over all of its table.
[[nodiscard]] std::size_t shard_of(name_hash hash, std::size_t shards) noexcept;

}  // namespace monolock::core
