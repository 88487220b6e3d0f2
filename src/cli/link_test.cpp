#include "cli/link.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

namespace monolock::cli {
namespace {

TEST(link, messages_arrive_whole_and_in_order) {
    const auto [left, right] = link::make();
    EXPECT_TRUE(left.send({.kind = message_kind::deliver, .value = 15}));
    EXPECT_TRUE(left.send({.kind = message_kind::go, .value = 1}));
    const auto first = right.receive();
    const auto second = right.receive();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->what.kind, message_kind::deliver);
    EXPECT_EQ(first->what.value, 15);
    EXPECT_FALSE(first->descriptor);
    EXPECT_EQ(second->what.kind, message_kind::go);
}

TEST(link, a_descriptor_travels_as_a_close_on_exec_duplicate) {
    const auto [left, right] = link::make();
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const posix::descriptor reader{ends[0]};
    posix::descriptor writer{ends[1]};
    EXPECT_TRUE(left.send({.kind = message_kind::granted}, writer.get()));
    writer.reset();
    const auto received = right.receive();
    ASSERT_TRUE(received && received->descriptor);
    EXPECT_NE(fcntl(received->descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(write(received->descriptor.get(), "x", 1), 1);
    char letter = 0;
    EXPECT_EQ(read(reader.get(), &letter, 1), 1);
}

TEST(link, what_was_sent_before_the_end_arrives_though_the_sender_left_messages_unread) {
    auto [left, right] = link::make();
    EXPECT_TRUE(right.send({.kind = message_kind::deliver, .value = 15}));
    EXPECT_TRUE(left.send({.kind = message_kind::finished, .value = 7}));
    left.close();
    const auto received = right.receive();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->what.value, 7);
    EXPECT_FALSE(right.receive());
}

TEST(link, the_end_of_one_side_is_the_end_of_the_line) {
    auto [left, right] = link::make();
    EXPECT_TRUE(left.send({.kind = message_kind::go}));
    left.close();
    EXPECT_TRUE(right.receive());
    EXPECT_FALSE(right.receive());
    EXPECT_FALSE(right.send({.kind = message_kind::started}));  // and no SIGPIPE
}

// Each of the two processes has deadlines to keep, even while the other is stopped.
TEST(link, whose_other_end_reads_nothing_keeps_nobody_waiting) {
    const auto [wrapper, guardian] = link::make();
    int taken = 0;
    while (wrapper.send({.kind = message_kind::deliver, .value = taken})) {
        ASSERT_LT(++taken, 1'000'000);
    }
    EXPECT_GT(taken, 16);
    for (int each = 0; each < taken; ++each) {
        EXPECT_EQ(guardian.receive()->what.value, each);
    }
    EXPECT_TRUE(wrapper.send({.kind = message_kind::deliver}));
}

}  // namespace
}  // namespace monolock::cli
