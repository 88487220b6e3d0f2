#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "client/claim.hpp"
#include "simulation/claim_deadline.hpp"
#include "simulation/dialer.hpp"
#include "simulation/rules.hpp"
#include "simulation/stream.hpp"

namespace monolock::simulation {

// A process that uses the client library: it claims a lock, works while it owns it, releases it,
// rests, and claims again, one connection after another. The claim is the real state machine;
// around it stands a shell that takes turns exactly as claim.hpp asks, and can be stopped between
// any two of their steps.
class honest_client final : public socket_owner {
public:
    honest_client(context& world, rules& checks, dialer& network, int number);

    void start();
    void on_ready(connection& link) override;

    // ---- the outside. Each says whether that interrupted anything.
    bool stop_for(sim_time pause);
    bool crash();
    bool vanish();
    // Faults are over, and so are their consequences from then on: one more claim, to be served,
    // and one that begins in the quiet, and then no more.
    void calm_down(sim_time quiet_from);

    // What it is sure of at this moment, by its own clock.
    [[nodiscard]] std::optional<rules::belief> belief() const;
    // Since it was told to calm down.
    [[nodiscard]] bool served() const noexcept { return served_; }
    [[nodiscard]] bool done() const noexcept { return at_ == phase::done; }
    // Its connection, if it has one.
    [[nodiscard]] connection* link() const noexcept { return link_; }
    [[nodiscard]] int number() const noexcept { return number_; }

private:
    enum class phase : std::uint8_t { resting, dialing, claiming, working, done };
    enum class step : std::uint8_t { read_clock, receive, judge, output, send, drain, settle };

    [[nodiscard]] detail::claim_time clock() const noexcept;
    [[nodiscard]] bool stopped() const noexcept;
    [[nodiscard]] actor self() const noexcept { return {"client", number_}; }
    void at_if_current(sim_time when, void (honest_client::*what)());

    void dial();
    void connected(connection& link);
    void wake();
    void take_turn();
    bool stops_here();
    void receive();
    void judge();
    void drain();
    void took(std::span<const std::byte> bytes);
    void tell();
    [[nodiscard]] sim_time believes_until() const;
    void ended();
    void send();
    void settle();
    void arm_timer();
    void timer_fires();
    void acquired();
    void write_to_resource();
    void give_up_waiting();
    void work_ends();
    void lost();
    void leave();
    void rest();

    context* world_;
    rules* rules_;
    dialer* network_;
    int number_;
    drifting_clock clock_;

    phase at_ = phase::resting;
    std::uint32_t attempt_ = 0;  // events of an earlier one are void
    bool calm_ = false;
    sim_time quiet_from_ = never;
    bool began_quiet_ = false;  // this attempt did
    bool served_ = false;
    bool served_in_quiet_ = false;

    connection* link_ = nullptr;
    std::optional<stream> stream_;  // over link_
    claim_record* record_ = nullptr;
    std::optional<detail::claim> claim_;
    std::optional<claim_deadline> deadline_;
    const claim_record* refused_ = nullptr;  // the attempt that is to be repeated
    int lock_ = 0;
    milliseconds lease_{0};

    sim_time stopped_until_{0};
    bool in_turn_ = false;
    bool turn_scheduled_ = false;
    step next_ = step::read_clock;
    detail::claim_time reading_{};
    std::span<const std::byte> output_;
    bool wants_write_ = false;
    sim_time timer_at_ = never;
};

}  // namespace monolock::simulation
