// A heartbeat allocates nothing. This program counts every allocation, so it has one test only.

#include <gtest/gtest.h>

#include "core/session_engine.hpp"
#include "support/counted_heap.hpp"
#include "support/scripted_ports.hpp"

namespace monolock::core {
namespace {

// A peer that sends one heartbeat a turn and reads all answers.
class beating_session final : public connected_session {
public:
    using connected_session::connected_session;

    receive_result receive(std::span<std::byte> into) noexcept override {
        into[0] = protocol::heartbeat_frame[0];
        return {.status = receive_status::bytes, .count = 1};
    }
    send_result send(std::span<const std::byte> bytes) noexcept override {
        bytes_sent += bytes.size();
        return {.status = send_status::sent, .count = bytes.size()};
    }
    void await_readable() override {}
    void await_writable() override {}
    void drop_connection() noexcept override {}
    void retire(closing /*how*/) noexcept override {}

    std::size_t bytes_sent = 0;
};

class idle_observer final : public observer_port {
public:
    void on_fact(const fact& /*what*/) override {}
    void on_error_due(const connected_session& /*who*/, protocol::error_code /*code*/,
                      std::string_view /*reason*/) override {}
};

TEST(session_engine_allocations, a_heartbeat_makes_none) {
    support::scripted_clock clock;
    support::scripted_tokens tokens;
    idle_observer observer;
    beating_session owner{session_id{1}};
    beating_session waiter{session_id{2}};
    session_engine engine{tokens, clock, observer, {}};
    for (beating_session* const who : {&owner, &waiter}) {
        engine.admit(*who, {.lease_ms = 1'000, .name = "nightly"}, name_hash{1}, clock.now(), {});
        engine.readable(*who);
    }
    const std::size_t before = test::counted_heap().allocations;
    ASSERT_GT(before, 0U) << "nothing is counted";
    for (int beat = 0; beat < 1'000; ++beat) {
        clock.advance(std::chrono::milliseconds{250});
        engine.readable(owner);
        engine.readable(waiter);
        // Re-arms the deadlines, which is where heartbeats are paid for.
        ASSERT_FALSE(engine.judge(9));
    }
    EXPECT_EQ(test::counted_heap().allocations - before, 0U);
    EXPECT_EQ(owner.bytes_sent, 1'002 * protocol::acquired_bytes);
    EXPECT_EQ(waiter.bytes_sent, 1'002U);
    engine.withhold_grants();
    ASSERT_FALSE(engine.close_all(9, protocol::error_code::server_shutting_down));
}

}  // namespace
}  // namespace monolock::core
