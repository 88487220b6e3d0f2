#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/failover/context.hpp"

namespace monolock::simulation::failover {

// What goes from a client to a server, and back.
enum class call : std::uint8_t { acquire, beat, close };
enum class reply : std::uint8_t { waiting, acquired, push, error, reset };

// One connection, which lives as long as somebody knows it. Bytes arrive in order, later.
struct connection {
    std::uint64_t id = 0;
    int client = 0;
    int server = 0;
    int lock = 0;
    milliseconds lease{0};
    bool forced = false;  // its end was an operator's act, not silence
    bool cut = false;     // it carries nothing any more, and nobody is told
    sim_time up_free{0};
    sim_time down_free{0};
};
using connection_ptr = std::shared_ptr<connection>;

// What a client can reach.
class harbour {
public:
    virtual ~harbour() = default;
    // Whether it was accepted.
    [[nodiscard]] virtual bool connect(const connection_ptr& link) = 0;
    virtual void send(const connection_ptr& link, call what) = 0;
    virtual void believes_now(int client) = 0;
};

// A client of the library, as far as it matters here: it claims its lock at one server after
// another, beats, and believes until the send time of the last answered message + 0.8 x lease, on
// its own clock. (Its real state machine is simulated in the other simulator.)
class client {
public:
    client(context& world, harbour& shore, int number);

    void start() { rest(); }
    // Another lease from its next claim on.
    bool change_lease();
    // What it hears on a connection.
    void hear(const connection_ptr& link, reply what, std::int64_t term);

    // Whether it believes, at this moment, that it owns its lock; and by the grant of which term.
    [[nodiscard]] bool believes() const;
    [[nodiscard]] std::int64_t term() const noexcept { return term_; }
    [[nodiscard]] int lock() const noexcept { return lock_; }
    [[nodiscard]] milliseconds lease() const noexcept;
    [[nodiscard]] const connection_ptr& link() const noexcept { return link_; }
    [[nodiscard]] std::uint64_t times_served() const noexcept { return times_served_; }

private:
    enum class phase : std::uint8_t { resting, connecting, requesting, waiting, held };

    void rest();
    void connect();
    void connected();
    void say(call what);
    void beat_when_due();
    void give_up(bool tell);
    void confirm();
    [[nodiscard]] nanoseconds clock() const { return clock_.at(world_->events.now()); }
    void arm(nanoseconds reading, void (client::*what)());
    void at_deadline();
    void at_beat();
    void at_release();

    context* world_;
    harbour* shore_;
    int number_;
    drifting_clock clock_;
    int lock_ = 0;
    milliseconds next_lease_{0};
    phase at_ = phase::resting;
    int server_ = 0;
    connection_ptr link_;
    std::uint64_t round_ = 0;  // of what is armed; a new connection begins a new one
    nanoseconds sent_at_{0};
    bool in_flight_ = false;
    nanoseconds confirmed_at_{0};
    std::int64_t term_ = 0;
    std::uint64_t times_served_ = 0;
};

}  // namespace monolock::simulation::failover
