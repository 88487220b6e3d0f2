#include "server/readiness_set.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::server {
namespace {

using readiness = readiness_set::readiness;

// One end of a stream in the set; the test holds the other.
class watched_end : public readiness_handler {
public:
    explicit watched_end(readiness_set& in) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        near = posix::descriptor{ends[0]};
        far = posix::descriptor{ends[1]};
        watch = in.add(near.get());
        EXPECT_TRUE(watch);
    }

    void await_input() { watch->await_readable(*this); }
    void await_output() { watch->await_writable(*this); }

    void send(std::size_t count) const {
        const std::vector<std::byte> bytes(count);
        EXPECT_EQ(::send(far.get(), bytes.data(), count, 0), static_cast<ssize_t>(count));
    }

    // Receives, and tells the set what it found. Negative: nothing.
    ssize_t receive(std::size_t room) const {
        std::vector<std::byte> bytes(room);
        const ssize_t got = ::recv(near.get(), bytes.data(), room, 0);
        if (got < 0) {
            watch->found_empty();
        } else if (static_cast<std::size_t>(got) < room) {
            watch->found_less();
        }
        return got;
    }

    // As long as there is room.
    void fill_output() const {
        const std::array<std::byte, 4096> bytes{};
        while (::send(near.get(), bytes.data(), bytes.size(), 0) > 0) {
        }
    }
    void drain_output() const {
        std::array<std::byte, 4096> bytes{};
        while (::recv(far.get(), bytes.data(), bytes.size(), 0) > 0) {
        }
    }

    void close() {
        watch.reset();
        near.reset();
    }

    int readable = 0;
    int writable = 0;
    std::function<void()> when_readable;
    std::function<void()> when_writable;

    posix::descriptor near;
    posix::descriptor far;
    readiness_set::watch_ptr watch;

private:
    void on_readable() override {
        ++readable;
        if (when_readable) {
            when_readable();
        }
    }
    void on_writable() override {
        ++writable;
        if (when_writable) {
            when_writable();
        }
    }
};

using end_ptr = boost::intrusive_ptr<watched_end>;

class readiness_set_test : public testing::Test {
protected:
    end_ptr make_end() { return new watched_end{*connections_}; }

    // Everything that is to happen without anything new from outside.
    void settle() {
        // A handler that finds nothing to do is cheap; one that spins shows in the counts.
        for (int turn = 0; turn < 50; ++turn) {
            connections_->turn(false);
        }
    }

    std::optional<readiness_set> connections_{std::in_place};
};

TEST_F(readiness_set_test, input_that_was_there_before_and_input_that_comes) {
    const end_ptr end = make_end();
    end->send(1);
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 1) << "once for each wait";
    EXPECT_EQ(end->receive(10), 1);
    end->await_input();
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 1);
    end->send(1);
    settle();
    EXPECT_EQ(end->readable, 2);
    end->close();
}

TEST_F(readiness_set_test, input_that_came_while_nobody_waited) {
    const end_ptr end = make_end();
    settle();
    end->send(1);
    settle();
    EXPECT_EQ(end->readable, 0);
    end->await_input();
    EXPECT_EQ(end->readable, 0) << "never within the call";
    settle();
    EXPECT_EQ(end->readable, 1);
    end->close();
}

// No edge comes for what is left.
TEST_F(readiness_set_test, input_that_a_receive_had_no_room_for) {
    const end_ptr end = make_end();
    end->send(10);
    end->await_input();
    settle();
    EXPECT_EQ(end->receive(4), 4);
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 2);
    EXPECT_EQ(end->receive(6), 6);
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 3) << "it may have been all, or not";
    EXPECT_EQ(end->receive(6), -1);
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 3);
    end->close();
}

// The end of the stream may have come with the last bytes, in one edge.
TEST_F(readiness_set_test, the_end_of_input_is_told_after_the_last_bytes) {
    const end_ptr end = make_end();
    settle();
    end->send(1);
    end->far.reset();
    end->await_input();
    settle();
    EXPECT_EQ(end->receive(10), 1);
    end->await_input();
    settle();
    EXPECT_EQ(end->readable, 2);
    EXPECT_EQ(end->receive(10), 0);
    end->close();
}

TEST_F(readiness_set_test, the_end_of_input_that_comes_later_is_an_edge_of_its_own) {
    const end_ptr end = make_end();
    end->send(1);
    end->await_input();
    settle();
    EXPECT_EQ(end->receive(10), 1);
    end->await_input();
    settle();
    EXPECT_EQ(::shutdown(end->far.get(), SHUT_WR), 0);
    settle();
    EXPECT_EQ(end->readable, 2);
    end->close();
}

TEST_F(readiness_set_test, output_when_there_is_room_and_when_it_comes) {
    const end_ptr end = make_end();
    end->await_output();
    settle();
    EXPECT_EQ(end->writable, 1);
    end->fill_output();
    end->await_output();
    settle();
    EXPECT_EQ(end->writable, 1);
    end->drain_output();
    settle();
    EXPECT_EQ(end->writable, 2);
    end->await_output();
    settle();
    EXPECT_EQ(end->writable, 3) << "the edge is past, the room is there";
    EXPECT_EQ(end->readable, 0);
    end->close();
}

TEST_F(readiness_set_test, a_wait_for_the_other_direction) {
    const end_ptr end = make_end();
    end->watch->await_writable(*end, readiness::input);
    settle();
    EXPECT_EQ(end->writable, 0);
    end->send(1);
    settle();
    EXPECT_EQ(end->writable, 1);
    end->fill_output();
    end->watch->await_readable(*end, readiness::output);
    settle();
    EXPECT_EQ(end->readable, 0) << "though there is input";
    end->drain_output();
    settle();
    EXPECT_EQ(end->readable, 1);
    end->close();
}

TEST_F(readiness_set_test, readable_for_another_reason) {
    const end_ptr end = make_end();
    end->await_input();
    end->watch->readable_anyway(*end);
    EXPECT_EQ(end->readable, 0);
    settle();
    EXPECT_EQ(end->readable, 1);
    end->close();
}

// Who has more to read than it reads in a turn gives way to the others in between.
TEST_F(readiness_set_test, everybody_has_a_turn) {
    const end_ptr busy = make_end();
    const end_ptr other = make_end();
    std::vector<char> order;
    busy->when_readable = [&] {
        order.push_back('b');
        EXPECT_EQ(busy->receive(1), 1);
        if (busy->readable == 1) {
            other->send(1);
        }
        if (busy->readable < 5) {
            busy->await_input();
        }
    };
    other->when_readable = [&] {
        order.push_back('o');
        other->close();
    };
    busy->send(5);
    busy->await_input();
    other->await_input();
    settle();
    ASSERT_EQ(order.size(), 6U);
    EXPECT_TRUE(order[1] == 'o' || order[2] == 'o') << std::string(order.begin(), order.end());
    busy->close();
}

// However much it sends: it is called once a turn, and a turn serves many others, more than a batch
// of them here.
TEST_F(readiness_set_test, a_flood_has_no_more_than_its_turn) {
    constexpr int flood = 200;
    constexpr int calls_max = 10;  // before all others were served
    const end_ptr busy = make_end();
    std::vector<end_ptr> others;
    int served = 0;
    int calls_before_the_last = 0;
    busy->when_readable = [&] {
        EXPECT_EQ(busy->receive(1), 1);
        if (busy->readable < flood) {
            busy->await_input();
        }
    };
    for (int number = 0; number < 300; ++number) {
        others.push_back(make_end());
        others.back()->when_readable = [&, end = others.back().get()] {
            EXPECT_EQ(end->receive(10), 1);
            ++served;
            calls_before_the_last = busy->readable;
        };
        others.back()->await_input();
    }
    busy->await_input();
    settle();
    busy->send(flood);
    for (const end_ptr& each : others) {
        each->send(1);
    }
    settle();
    EXPECT_EQ(served, 300);
    EXPECT_GT(busy->readable, calls_max) << "there was more for it to take";
    EXPECT_LE(calls_before_the_last, calls_max);
    busy->close();
    for (const end_ptr& each : others) {
        each->close();
    }
}

TEST_F(readiness_set_test, more_than_a_batch_at_once) {
    std::vector<end_ptr> ends;
    for (int number = 0; number < 300; ++number) {
        ends.push_back(make_end());
        ends.back()->await_input();
    }
    settle();
    for (const end_ptr& each : ends) {
        each->send(1);
    }
    settle();
    for (const end_ptr& each : ends) {
        EXPECT_EQ(each->readable, 1);
        each->close();
    }
}

// Both are in the batch, and whoever is called first closes the other.
TEST_F(readiness_set_test, nobody_is_called_after_the_close) {
    const end_ptr one = make_end();
    const end_ptr two = make_end();
    one->when_readable = [&] { two->close(); };
    two->when_readable = [&] { one->close(); };
    one->await_input();
    two->await_input();
    settle();
    one->send(1);
    two->send(1);
    settle();
    EXPECT_EQ(one->readable + two->readable, 1);
    one->await_output();
    one->close();
    settle();
    EXPECT_EQ(one->writable, 0) << "due, and closed before";
}

TEST_F(readiness_set_test, a_handler_may_close_itself_and_go) {
    int destroyed = 0;
    struct counting final : watched_end {
        counting(readiness_set& in, int& count) : watched_end{in}, destroyed{&count} {}
        ~counting() override { ++*destroyed; }
        int* destroyed;
    };
    boost::intrusive_ptr<counting> end{new counting{*connections_, destroyed}};
    end->when_readable = [raw = end.get()] { raw->close(); };
    end->send(1);
    end->await_input();
    end->await_output();
    end.reset();
    EXPECT_EQ(destroyed, 0) << "its waits keep it";
    settle();
    EXPECT_EQ(destroyed, 1);
}

TEST_F(readiness_set_test, a_connection_moves_to_another_set) {
    readiness_set elsewhere;
    const end_ptr end = make_end();
    end->send(3);
    end->await_input();
    settle();
    EXPECT_EQ(end->receive(1), 1);
    end->watch->let_go();
    end->watch = elsewhere.add(end->near.get());
    ASSERT_TRUE(end->watch);
    end->await_input();
    elsewhere.turn(false);
    elsewhere.turn(false);
    EXPECT_EQ(end->readable, 2);
    EXPECT_EQ(end->receive(9), 2);
    end->await_input();
    end->send(1);
    elsewhere.turn(false);
    elsewhere.turn(false);
    EXPECT_EQ(end->readable, 3);
    end->close();
    elsewhere.turn(false);
}

TEST_F(readiness_set_test, what_still_waits_at_the_end_is_let_go) {
    int destroyed = 0;
    struct counting final : watched_end {
        counting(readiness_set& in, int& count) : watched_end{in}, destroyed{&count} {}
        ~counting() override { ++*destroyed; }
        int* destroyed;
    };
    for (int number = 0; number < 3; ++number) {
        const boost::intrusive_ptr<counting> end{new counting{*connections_, destroyed}};
        end->await_input();
        end->await_output();
    }
    EXPECT_EQ(destroyed, 0);
    connections_.reset();
    EXPECT_EQ(destroyed, 3);
}

TEST_F(readiness_set_test, a_descriptor_that_cannot_be_watched_is_refused) {
    EXPECT_FALSE(connections_->add(-1));
}

}  // namespace
}  // namespace monolock::server
