#include "simulation/failover/client.hpp"

#include <algorithm>

namespace monolock::simulation::failover {

using namespace std::chrono_literals;

client::client(context& world, harbour& shore, int number)
    : world_{&world},
      shore_{&shore},
      number_{number},
      clock_{world.draw_clock()},
      lock_{static_cast<int>(world.random.below(static_cast<std::uint64_t>(world.plan.locks)))} {
    change_lease();
}

bool client::change_lease() {
    const milliseconds before = next_lease_;
    next_lease_ = milliseconds{
        world_->random.spread(world_->plan.lease_min.count(), world_->plan.lease_max.count())};
    return next_lease_ != before;
}

milliseconds client::lease() const noexcept {
    return link_ ? link_->lease : milliseconds{0};
}

bool client::believes() const {
    return at_ == phase::held && clock() < confirmed_at_ + nanoseconds{link_->lease} * 4 / 5;
}

// The action happens when the clock shows that reading, unless a new round has begun.
void client::arm(nanoseconds reading, void (client::*what)()) {
    world_->events.at(clock_.when(reading), [this, what, round = round_] {
        if (round == round_) {
            (this->*what)();
        }
    });
}

void client::rest() {
    at_ = phase::resting;
    link_.reset();
    ++round_;
    const sim_time pause = world_->random.spread(sim_time{20ms}, sim_time{1s});
    arm(clock() + pause, &client::connect);
}

void client::connect() {
    at_ = phase::connecting;
    link_ = std::make_shared<connection>(
        connection{.id = (round_ << 8U) + static_cast<std::uint64_t>(number_),
                   .client = number_,
                   .server = server_,
                   .lock = lock_,
                   .lease = next_lease_});
    arm(clock() + world_->random.between(sim_time{20us}, world_->plan.client_delay_max),
        &client::connected);
}

void client::connected() {
    if (!shore_->connect(link_)) {
        server_ = (server_ + 1) % world_->plan.servers;
        rest();
        return;
    }
    at_ = phase::requesting;
    confirmed_at_ = clock();
    say(call::acquire);
    arm(confirmed_at_ + nanoseconds{link_->lease} * 4 / 5, &client::at_deadline);
}

void client::say(call what) {
    in_flight_ = what != call::close;
    sent_at_ = clock();
    shore_->send(link_, what);
}

void client::give_up(bool tell) {
    if (tell) {
        say(call::close);
    }
    rest();
}

// Armed once for each confirmation; an old one finds that there is more.
void client::at_deadline() {
    if (clock() >= confirmed_at_ + nanoseconds{link_->lease} * 4 / 5) {
        server_ = (server_ + 1) % world_->plan.servers;
        give_up(true);
    }
}

void client::at_beat() {
    if (!in_flight_) {
        say(call::beat);
    }
}

void client::at_release() {
    give_up(true);
}

void client::confirm() {
    in_flight_ = false;
    confirmed_at_ = sent_at_;
    arm(confirmed_at_ + nanoseconds{link_->lease} * 4 / 5, &client::at_deadline);
    arm(std::max(clock(), sent_at_ + nanoseconds{link_->lease} / 4), &client::at_beat);
}

void client::hear(const connection_ptr& link, reply what, std::int64_t term) {
    if (link != link_) {
        return;
    }
    switch (what) {
        case reply::error:
        case reply::reset:
            give_up(false);
            return;
        case reply::waiting:
            at_ = phase::waiting;
            confirm();
            return;
        case reply::acquired:
        case reply::push:
            if (what == reply::acquired) {
                confirm();  // a push answers nothing
            }
            if (at_ != phase::held) {
                at_ = phase::held;
                term_ = term;
                ++times_served_;
                arm(clock() + world_->random.between(sim_time{1ms}, world_->plan.hold_max),
                    &client::at_release);
            }
            if (believes()) {
                shore_->believes_now(number_);
            }
            return;
    }
}

}  // namespace monolock::simulation::failover
