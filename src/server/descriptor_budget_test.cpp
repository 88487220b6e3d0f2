#include "server/descriptor_budget.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::server {
namespace {

// This process has a few descriptors open already; the lowest free one says how many.
std::int64_t in_use() {
    return posix::descriptor{::open("/dev/null", O_RDONLY)}.get();
}

TEST(descriptor_budget, keeps_a_reserve_that_fits_the_limit) {
    for (const auto& [limit, reserve] :
         {std::pair{64, 8}, {256, 32}, {1024, 64}, {20'000, 64}, {1'000'000, 64}}) {
        descriptor_budget budget;
        budget.open(static_cast<std::uint64_t>(limit));
        EXPECT_EQ(budget.connections_max(), limit - reserve - in_use()) << limit;
    }
}

TEST(descriptor_budget, gives_each_slot_once_and_takes_it_back) {
    descriptor_budget budget;
    budget.open(64);
    std::vector<descriptor_budget::slot> held;
    for (std::int64_t count = 0; count < budget.connections_max(); ++count) {
        held.push_back(budget.take());
        ASSERT_TRUE(held.back());
    }
    EXPECT_FALSE(budget.take());

    descriptor_budget::slot moved = std::move(held.back());
    held.pop_back();
    EXPECT_FALSE(budget.take());  // a move gives nothing back
    moved = {};
    EXPECT_TRUE(budget.take());
    EXPECT_TRUE(budget.take());  // and was given back at once
}

TEST(descriptor_budget, has_nothing_where_the_limit_is_used_up) {
    descriptor_budget budget;
    budget.open(4);
    EXPECT_EQ(budget.connections_max(), 0);
    EXPECT_FALSE(budget.take());
}

}  // namespace
}  // namespace monolock::server
