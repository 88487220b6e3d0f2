#include "simulation/record_layer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "simulation/context.hpp"

namespace monolock::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t overhead = 7;  // of a record

// A record layer that is kinder than OpenSSL proves nothing either.
class record_layers : public testing::Test {
protected:
    record_layers() {
        calm(world.plan);
        world.plan.split = 0;
        world.plan.record_cuts = 0;
        world.plan.short_reads = 0;
        world.plan.read_ahead = true;
        world.plan.send_buffer = 64;
        world.plan.receive_buffer = 64;
    }

    void pass(sim_time duration = 5ms) {
        const sim_time until = world.events.now() + duration;
        while (world.events.run_next(until)) {
        }
    }

    std::size_t write(record_layer& by, std::string_view text) {
        const io_result did = by.write(std::as_bytes(std::span{text}));
        last = did.status;
        return did.count;
    }

    std::string read(record_layer& by, std::size_t most = 64) {
        std::array<std::byte, 64> buffer{};
        const io_result got = by.read(std::span{buffer}.first(most));
        last = got.status;
        return {reinterpret_cast<const char*>(buffer.data()), got.count};
    }

    tally totals;
    context world{{}, totals};
    connection link{world, 0};
    record_layer client{world, link, side::client};
    record_layer server{world, link, side::server};
    io_status last = io_status::done;
};

TEST_F(record_layers, the_rest_of_a_record_stays_inside_where_no_readiness_tells_of_it) {
    EXPECT_EQ(write(client, "abcdef"), 6U);
    pass();
    EXPECT_EQ(read(server, 4), "abcd");
    EXPECT_FALSE(link.readable(side::server));
    EXPECT_TRUE(server.holds_input());
    EXPECT_EQ(read(server), "ef");
    EXPECT_FALSE(server.holds_input());
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::would_block);
}

TEST_F(record_layers, read_ahead_takes_further_records_out_of_the_socket) {
    write(client, "ab");
    write(client, "cd");
    pass();
    EXPECT_EQ(read(server), "ab");
    EXPECT_FALSE(link.readable(side::server));
    EXPECT_TRUE(server.holds_input());
    EXPECT_EQ(read(server), "cd");
}

TEST_F(record_layers, without_read_ahead_they_stay_in_the_socket) {
    world.plan.read_ahead = false;
    write(client, "ab");
    write(client, "cd");
    pass();
    EXPECT_EQ(read(server), "ab");
    EXPECT_EQ(link.unread(side::server), 2 + overhead);
    EXPECT_FALSE(server.holds_input());
    EXPECT_EQ(read(server), "cd");
}

TEST_F(record_layers, a_part_of_a_record_is_nothing_and_nothing_to_wait_for_inside) {
    world.plan.send_buffer = overhead + 1;
    EXPECT_EQ(write(client, "ab"), 0U);  // all but one byte of the record is out
    pass();
    EXPECT_EQ(server.oldest_unread(), never);
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::would_block);
    EXPECT_FALSE(link.readable(side::server));
    EXPECT_FALSE(server.holds_input());
    EXPECT_EQ(write(client, "abc"), 0U);  // that record, and a part of the next
    const sim_time before = world.events.now();
    pass();
    EXPECT_GE(server.oldest_unread(), before);
    EXPECT_EQ(read(server), "ab");
    EXPECT_GE(server.last_read_arrived(), before);
}

TEST_F(record_layers, a_part_that_comes_with_a_whole_record_is_asked_for_once) {
    world.plan.send_buffer = 2 + overhead + 3;
    write(client, "ab");
    write(client, "cd");
    pass();
    EXPECT_EQ(read(server), "ab");
    EXPECT_TRUE(server.holds_input());
    EXPECT_EQ(read(server), "");
    EXPECT_FALSE(server.holds_input());
}

TEST_F(record_layers, what_is_written_together_may_come_apart) {
    world.plan.record_cuts = 1'000'000;
    EXPECT_EQ(write(client, "abcdef"), 6U);
    pass();
    std::string all;
    int reads = 0;
    for (std::string some = read(server); !some.empty(); some = read(server)) {
        all += some;
        ++reads;
    }
    EXPECT_EQ(all, "abcdef");
    EXPECT_GT(reads, 1);
}

TEST_F(record_layers, a_half_sent_record_must_be_finished_with_the_same_bytes) {
    world.plan.send_buffer = overhead;
    EXPECT_EQ(write(client, "ab"), 0U);
    EXPECT_EXIT(write(client, "xb"), testing::ExitedWithCode(1), "");
    EXPECT_EXIT(write(client, "a"), testing::ExitedWithCode(1), "");
    pass();
    EXPECT_EQ(write(client, "ab"), 2U);
    EXPECT_EQ(write(client, ""), 0U);
}

TEST_F(record_layers, a_record_that_is_out_counts_once_those_behind_it_are) {
    world.plan.send_buffer = overhead + 1;
    EXPECT_EQ(write(client, "ab"), 0U);
    pass();
    EXPECT_EQ(write(client, "abcd"), 0U);
    pass();
    EXPECT_EQ(read(server), "ab");
    EXPECT_EXIT(write(client, "cd"), testing::ExitedWithCode(1), "");
    EXPECT_EQ(write(client, "abcd"), 4U);
    pass();
    EXPECT_EQ(read(server), "cd");
}

TEST_F(record_layers, a_close_notify_is_the_end_and_leaves_the_other_way_open) {
    write(client, "ab");
    client.send_close_notify();
    pass();
    EXPECT_EQ(read(server), "ab");
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::eof);
    EXPECT_TRUE(server.peer_ended());
    EXPECT_EQ(write(server, "cd"), 2U);
    pass();
    EXPECT_EQ(read(client), "cd");
}

TEST_F(record_layers, an_end_of_file_within_a_record_is_an_end_of_file) {
    world.plan.send_buffer = overhead;
    write(client, "ab");
    link.close(side::client);
    pass();
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::eof);
    EXPECT_FALSE(server.peer_ended());
}

TEST_F(record_layers, a_fatal_alert_ends_both_ways) {
    client.send_fatal_alert();
    pass();
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::alerted);
    EXPECT_TRUE(server.peer_ended());
    write(server, "x");
    EXPECT_EQ(last, io_status::reset);
}

TEST_F(record_layers, what_is_no_record_is_answered_with_an_alert) {
    static_cast<void>(link.write(side::client, std::as_bytes(std::span{"GET / HTTP/1.1"})));
    pass();
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::unreadable);
    EXPECT_TRUE(server.failed());
    EXPECT_TRUE(server.alert_sent());
    pass();
    read(client);
    EXPECT_EQ(last, io_status::alerted);
}

TEST_F(record_layers, a_record_that_was_changed_on_its_way_is_refused) {
    connection middle{world, 1};
    record_layer sender{world, middle, side::client};
    write(sender, "ab");
    pass();
    std::array<std::byte, 64> record{};
    const std::size_t size = middle.read(side::server, record).count;
    record[3] ^= std::byte{1};
    static_cast<void>(link.write(side::client, std::span{record}.first(size)));
    pass();
    read(server);
    EXPECT_EQ(last, io_status::unreadable);
}

TEST_F(record_layers, records_without_bytes_are_passed_over_and_are_no_sign_of_life) {
    client.send_silent();
    client.send_silent();
    pass();
    EXPECT_EQ(server.oldest_unread(), never);
    EXPECT_EQ(read(server), "");
    EXPECT_EQ(last, io_status::would_block);
    client.send_silent();
    write(client, "ab");
    pass();
    EXPECT_EQ(read(server), "ab");
}

}  // namespace
}  // namespace monolock::simulation
