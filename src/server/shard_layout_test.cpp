// What shards write lies apart from what other threads read: seen in the addresses, since no test
// can see it in the time.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "server/cache_line.hpp"
#include "server/shard.hpp"
#include "support/shard_stage.hpp"

namespace monolock::server {
namespace {

// The lines of memory that an object is in.
template <class Object>
std::set<std::uintptr_t> lines_of(const Object& what) {
    const auto first = reinterpret_cast<std::uintptr_t>(&what);
    std::set<std::uintptr_t> lines;
    const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(&what + 1) - 1;
    for (std::uintptr_t line = first / cache_line_bytes; line <= last / cache_line_bytes; ++line) {
        lines.insert(line);
    }
    return lines;
}

// None of the objects is in a line of another's.
void expect_apart(const std::vector<std::set<std::uintptr_t>>& objects) {
    std::set<std::uintptr_t> seen;
    std::size_t lines = 0;
    for (const auto& each : objects) {
        lines += each.size();
        seen.insert(each.begin(), each.end());
    }
    EXPECT_EQ(seen.size(), lines);
}

TEST(shard_layout, shards_share_no_line) {
    test::shard_stage running{{.access = {}, .tls = {}, .shards = 4}};
    std::vector<std::set<std::uintptr_t>> shards;
    for (std::size_t number = 0; number < 4; ++number) {
        shards.push_back(lines_of(running.at(number)));
    }
    expect_apart(shards);
}

TEST(shard_layout, what_claims_and_grants_write_is_apart_from_what_heartbeats_read) {
    const shard_surroundings around{
        .hasher = core::name_hasher{{}}, .io_timeout = {}, .log = nullptr};
    auto only_read = lines_of(around.hasher);
    only_read.merge(lines_of(around.io_timeout));
    only_read.merge(lines_of(around.tls_at_start));
    only_read.merge(lines_of(around.log));
    only_read.merge(lines_of(around.audit));
    only_read.merge(lines_of(around.remembers_ownership));
    only_read.merge(lines_of(around.shards));
    expect_apart({lines_of(around.tokens), lines_of(around.accepting),
                  lines_of(around.last_session_id), only_read});
}

}  // namespace
}  // namespace monolock::server
