#include "core/name_hash.hpp"

#include <sodium/crypto_shorthash.h>

#include <cstring>
#include <tuple>

namespace monolock::core {

static_assert(crypto_shorthash_KEYBYTES == std::tuple_size_v<name_hasher::key>);
static_assert(crypto_shorthash_BYTES == sizeof(std::uint64_t));

name_hash name_hasher::operator()(std::string_view name) const noexcept {
    std::array<unsigned char, crypto_shorthash_BYTES> digest{};
    crypto_shorthash(digest.data(), reinterpret_cast<const unsigned char*>(name.data()),
                     name.size(), key_.data());
    name_hash hash;
    std::memcpy(&hash.value, digest.data(), digest.size());
    return hash;
}

std::size_t shard_of(name_hash hash, std::size_t shards) noexcept {
    constexpr std::uint64_t low_half = 0xFFFFFFFF;
    return static_cast<std::size_t>((hash.value & low_half) * shards >> 32U);
}

}  // namespace monolock::core
