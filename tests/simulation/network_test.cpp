#include "simulation/network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace monolock::simulation {
namespace {

using namespace std::chrono_literals;

// A simulated network that is kinder than a real one proves nothing, so what TCP does to a lock
// server is pinned down here.
class network : public testing::Test {
protected:
    network() {
        calm(world.plan);
        world.plan.split = 0;
        world.plan.send_buffer = 16;
        world.plan.receive_buffer = 8;
    }

    void pass(sim_time duration) {
        const sim_time until = world.events.now() + duration;
        while (world.events.run_next(until)) {
        }
    }

    std::size_t write(side end, std::string_view text) {
        const auto bytes = std::as_bytes(std::span{text});
        const io_result did = link.write(end, bytes);
        last = did.status;
        return did.count;
    }

    std::string read(side end) {
        std::array<std::byte, 64> buffer{};
        const io_result got = link.read(end, buffer);
        last = got.status;
        return {reinterpret_cast<const char*>(buffer.data()), got.count};
    }

    tally totals;
    context world{{}, totals};
    connection link{world, 0};
    io_status last = io_status::done;
};

TEST_F(network, bytes_take_time_and_arrive_in_order) {
    EXPECT_EQ(write(side::client, "ab"), 2U);
    EXPECT_EQ(read(side::server), "");
    EXPECT_EQ(last, io_status::would_block);
    write(side::client, "c");
    pass(5ms);
    EXPECT_EQ(read(side::server), "abc");
}

TEST_F(network, the_end_of_file_comes_after_the_last_byte) {
    write(side::client, "abc");
    link.close(side::client);
    pass(5ms);
    EXPECT_EQ(read(side::server), "abc");
    EXPECT_EQ(read(side::server), "");
    EXPECT_EQ(last, io_status::eof);
}

TEST_F(network, a_half_closed_end_still_reads_and_no_longer_writes) {
    link.shut_down_sending(side::client);
    pass(5ms);
    EXPECT_EQ(read(side::server), "");
    EXPECT_EQ(last, io_status::eof);
    write(side::server, "x");
    pass(5ms);
    EXPECT_EQ(read(side::client), "x");
    write(side::client, "y");
    EXPECT_EQ(last, io_status::reset);
}

TEST_F(network, a_close_with_unread_input_resets) {
    write(side::client, "unread");
    pass(5ms);
    link.close(side::server);
    pass(5ms);
    read(side::client);
    EXPECT_EQ(last, io_status::reset);
    read(side::client);
    EXPECT_EQ(last, io_status::eof);
    write(side::client, "z");
    EXPECT_EQ(last, io_status::reset);
}

TEST_F(network, input_for_a_closed_end_resets) {
    link.close(side::server);
    write(side::client, "late");
    pass(5ms);
    // FIN had arrived before.
    read(side::client);
    EXPECT_EQ(last, io_status::eof);
    write(side::client, "z");
    EXPECT_EQ(last, io_status::reset);
}

// The ERROR that a server sent before it closed without reading: it may be lost, and it may not.
TEST_F(network, a_reset_can_destroy_what_was_not_read) {
    int lost = 0;
    constexpr int rounds = 200;
    for (int round = 0; round < rounds; ++round) {
        connection one{world, 1};
        static_cast<void>(one.write(side::client, std::as_bytes(std::span{"beat", 4})));
        pass(5ms);
        static_cast<void>(one.write(side::server, std::as_bytes(std::span{"error", 5})));
        one.close(side::server);
        pass(5ms);
        std::array<std::byte, 64> buffer{};
        lost += one.read(side::client, buffer).status == io_status::done ? 0 : 1;
    }
    EXPECT_GT(lost, rounds / 10);
    EXPECT_LT(lost, rounds * 9 / 10);
}

TEST_F(network, a_full_window_makes_writes_short_until_the_reader_reads) {
    EXPECT_EQ(write(side::server, "0123456789abcdefXYZ"), 16U);
    pass(5ms);
    EXPECT_EQ(write(side::server, "0123456789"), 8U);  // what the window took makes room
    pass(5ms);
    EXPECT_FALSE(link.writable(side::server));
    EXPECT_EQ(read(side::client), "01234567");
    pass(5ms);
    EXPECT_TRUE(link.writable(side::server));
    EXPECT_EQ(read(side::client), "89abcdef");
}

TEST_F(network, a_stall_delays_and_loses_nothing) {
    link.stall(side::client, world.events.now() + 100ms);
    write(side::client, "a");
    pass(50ms);
    write(side::client, "b");
    link.close(side::client);
    pass(49ms);
    EXPECT_EQ(read(side::server), "");
    EXPECT_EQ(last, io_status::would_block);
    pass(5ms);
    EXPECT_EQ(read(side::server), "ab");
    read(side::server);
    EXPECT_EQ(last, io_status::eof);
}

TEST_F(network, a_drop_is_silent_and_fills_the_senders_buffer) {
    link.stall(side::client, never);
    link.close(side::client);
    pass(1h);
    read(side::server);
    EXPECT_EQ(last, io_status::would_block);
    // Acknowledgements do not come through either.
    EXPECT_EQ(write(side::server, "0123456789abcdef"), 16U);
    pass(1h);
    EXPECT_EQ(write(side::server, "x"), 0U);
}

TEST_F(network, a_reset_that_is_dropped_is_not_sent_again) {
    write(side::client, "unread");
    pass(5ms);
    link.stall(side::server, world.events.now() + 100ms);
    link.close(side::server);
    pass(1h);
    read(side::client);
    EXPECT_EQ(last, io_status::would_block);
    // But whoever sends to it hears of it.
    write(side::client, "more");
    pass(5ms);
    read(side::client);
    EXPECT_EQ(last, io_status::reset);
}

TEST_F(network, the_kernels_verdict_is_told_once_after_the_bytes_that_came) {
    write(side::client, "abc");
    pass(5ms);
    link.give_up(side::server);
    EXPECT_EQ(read(side::server), "abc");
    read(side::server);
    EXPECT_EQ(last, io_status::timed_out);
    read(side::server);
    EXPECT_EQ(last, io_status::eof);  // the trap: it is not the peer's word
    pass(1h);
    read(side::client);
    EXPECT_EQ(last, io_status::would_block);  // nobody was told
}

TEST_F(network, a_machine_that_vanished_answers_nothing_and_resets_when_it_is_back) {
    link.vanish(side::server, world.events.now() + 1s);
    write(side::client, "a");
    pass(500ms);
    read(side::client);
    EXPECT_EQ(last, io_status::would_block);
    pass(600ms);
    read(side::client);
    EXPECT_EQ(last, io_status::reset);
}

}  // namespace
}  // namespace monolock::simulation
