#include "core/name_hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace monolock::core {
namespace {

name_hasher::key counting_key() {
    name_hasher::key key{};
    for (std::size_t at = 0; at < key.size(); ++at) {
        key[at] = static_cast<unsigned char>(at);
    }
    return key;
}

std::vector<std::string> names(int count) {
    std::vector<std::string> made;
    for (int number = 0; number < count; ++number) {
        made.push_back("job/" + std::to_string(number));
    }
    return made;
}

// The reference vectors of SipHash-2-4's authors: key 00…0f, messages "", 00, 00 01, 00 01 02.
TEST(name_hasher, is_siphash_2_4) {
    const name_hasher hash{counting_key()};
    EXPECT_EQ(hash("").value, 0x726fdb47dd0e0e31U);
    EXPECT_EQ(hash(std::string{"\x00", 1}).value, 0x74f839c593dc67fdU);
    EXPECT_EQ(hash(std::string{"\x00\x01", 2}).value, 0x0d6c8009d9a94f5aU);
    EXPECT_EQ(hash(std::string{"\x00\x01\x02", 3}).value, 0x85676696d7fb7e2dU);
}

TEST(name_hasher, depends_on_the_key) {
    name_hasher::key other = counting_key();
    other[15] ^= 1U;
    EXPECT_NE(name_hasher{counting_key()}("nightly"), name_hasher{other}("nightly"));
}

TEST(shard_of, one_shard_owns_every_name) {
    const name_hasher hash{counting_key()};
    for (const std::string& name : names(100)) {
        EXPECT_EQ(shard_of(hash(name), 1), 0U);
    }
}

TEST(shard_of, spreads_names_evenly_over_any_number_of_shards) {
    const name_hasher hash{counting_key()};
    for (const std::size_t shards : {2U, 3U, 7U, 64U}) {
        std::vector<int> names_of(shards);
        for (const std::string& name : names(10'000)) {
            ASSERT_LT(shard_of(hash(name), shards), shards);
            ++names_of[shard_of(hash(name), shards)];
        }
        const int even = 10'000 / static_cast<int>(shards);
        for (const int count : names_of) {
            EXPECT_NEAR(count, even, even / 3) << shards << " shards";
        }
    }
}

// A table of boost::unordered places an element by the high bits of its hash. If the shard were
// chosen by the same bits, all names of a shard would crowd into one part of its table.
TEST(shard_of, leaves_the_bits_that_place_a_name_in_the_table) {
    const name_hasher hash{counting_key()};
    constexpr std::size_t shards = 16;
    std::vector<std::set<std::uint64_t>> parts_used(shards);
    for (const std::string& name : names(10'000)) {
        parts_used[shard_of(hash(name), shards)].insert(hash(name).value >> 60U);
    }
    for (const auto& parts : parts_used) {
        EXPECT_EQ(parts.size(), 16U);
    }
}

}  // namespace
}  // namespace monolock::core
