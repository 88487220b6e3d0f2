#include "simulation/network.hpp"

#include <algorithm>

namespace monolock::simulation {

namespace {

const char* name_of(side end) {
    return end == side::client ? "client's socket" : "server's socket";
}

actor network_actor(std::uint32_t id) {
    return {"connection", static_cast<int>(id)};
}

}  // namespace

connection::connection(context& world, std::uint32_t id) : world_{&world}, id_{id} {}

sim_time connection::draw_delay() {
    const swarm& plan = world_->plan;
    if (world_->random.chance(plan.spike)) {
        ++world_->counts->spikes;
        return world_->random.between(plan.delay_min, plan.spike_max + plan.delay_min);
    }
    return world_->random.between(plan.delay_min, plan.delay_max);
}

std::size_t connection::room(side from) const noexcept {
    const pipe& out = pipe_from(from);
    const std::size_t taken = out.under_way.size() + out.unacknowledged;
    return taken < world_->plan.send_buffer ? world_->plan.send_buffer - taken : 0;
}

// ---- system calls

io_result connection::take_error(side end) noexcept {
    trouble& error = at(end).error;
    const io_status status = error == trouble::timed_out ? io_status::timed_out : io_status::reset;
    error = trouble::reported;
    return {.status = status};
}

io_result connection::read(side end, std::span<std::byte> into) {
    pipe& in = pipe_to(end);
    if (in.inbox.empty()) {
        if (in.fin_arrived || at(end).error == trouble::reported) {
            return {.status = io_status::eof};
        }
        if (at(end).error != trouble::none) {
            return take_error(end);
        }
        return {};
    }
    const std::size_t count = std::min(into.size(), in.inbox.size());
    for (std::size_t index = 0; index < count; ++index) {
        into[index] = in.inbox.front().value;
        in.last_read_arrived = in.inbox.front().at;
        in.inbox.pop_front();
    }
    world_->log.note({name_of(end)}, "connection {}: {} bytes are read", id_, count);
    if (!in.segments.empty() && in.segments.front().arrives <= world_->events.now()) {
        // The window was full and opens again.
        world_->events.in(draw_delay(), [this, end] { deliver(other(end)); });
    }
    return {.status = io_status::done, .count = count};
}

io_result connection::write(side end, std::span<const std::byte> bytes) {
    if (at(end).error == trouble::reported || pipe_from(end).fin_sent) {
        return {.status = io_status::reset};  // EPIPE
    }
    if (at(end).error != trouble::none) {
        return take_error(end);
    }
    const std::size_t count = std::min(room(end), bytes.size());
    if (count < bytes.size()) {
        ++world_->counts->short_writes;
    }
    world_->log.note({name_of(end)}, "connection {}: {} of {} bytes are written", id_, count,
                     bytes.size());
    if (count > 0) {
        const auto taken = bytes.first(count);
        pipe& out = pipe_from(end);
        out.under_way.insert(out.under_way.end(), taken.begin(), taken.end());
        launch(end, count);
    }
    return {.status = io_status::done, .count = count};
}

bool connection::shut_down_sending(side end) {
    if (at(end).error != trouble::none || pipe_from(end).fin_sent) {
        return false;
    }
    world_->log.note({name_of(end)}, "connection {}: half-closed", id_);
    send_fin(end);
    return true;
}

void connection::close(side end) {
    end_point& mine = at(end);
    if (mine.life != end_state::open) {
        return;
    }
    mine.owner = nullptr;
    world_->log.note({name_of(end)}, "connection {}: closed", id_);
    if (mine.error != trouble::none) {
        mine.life = end_state::dead;
    } else if (!pipe_to(end).inbox.empty()) {
        mine.life = end_state::dead;
        send_reset(end);
    } else {
        mine.life = end_state::closed;
        if (!pipe_from(end).fin_sent) {
            send_fin(end);
        }
    }
    pipe_to(end).inbox.clear();
}

void connection::abort(side end) {
    end_point& mine = at(end);
    if (mine.life != end_state::open) {
        return;
    }
    mine.owner = nullptr;
    mine.life = end_state::dead;
    if (mine.error == trouble::none) {
        send_reset(end);
    }
    pipe_to(end).inbox.clear();
}

bool connection::readable(side end) const noexcept {
    const pipe& in = pipe_to(end);
    return !in.inbox.empty() || in.fin_arrived || at(end).error != trouble::none;
}

bool connection::writable(side end) const noexcept {
    return room(end) > 0 || at(end).error != trouble::none;
}

sim_time connection::oldest_unread(side end) const noexcept {
    const pipe& in = pipe_to(end);
    return in.inbox.empty() ? never : in.inbox.front().at;
}

bool connection::stalled(side from) const noexcept {
    return pipe_from(from).stalled_until > world_->events.now();
}

// ---- packets

// Cuts what was just written into segments; each arrives no earlier than the one before it.
void connection::launch(side from, std::size_t count) {
    pipe& out = pipe_from(from);
    while (count > 0) {
        const bool cut_here = count > 1 && world_->random.chance(world_->plan.split);
        const std::size_t size = cut_here ? 1 + world_->random.below(count - 1) : count;
        out.last_arrival = std::max(out.last_arrival, world_->events.now() + draw_delay());
        out.segments.push_back({.arrives = out.last_arrival, .count = size});
        world_->events.at(out.last_arrival, [this, from] { deliver(from); });
        count -= size;
    }
}

void connection::send_fin(side from) {
    pipe& out = pipe_from(from);
    out.fin_sent = true;
    out.last_arrival = std::max(out.last_arrival, world_->events.now() + draw_delay());
    out.fin_arrives = out.last_arrival;
    world_->events.at(out.last_arrival, [this, from] { deliver(from); });
}

// Hands over everything that is due, as far as the window lets it.
void connection::deliver(side from) {
    pipe& in = pipe_from(from);
    if (in.cut || stalled(from)) {
        return;  // what stalls is delivered when the stall ends
    }
    const std::size_t under_way_before = in.under_way.size();
    while (!in.segments.empty() && in.segments.front().arrives <= world_->events.now()) {
        if (!deliver_segment(from)) {
            break;
        }
    }
    bool any = in.under_way.size() < under_way_before;
    const end_point& receiver = at(other(from));
    if (in.segments.empty() && !in.fin_arrived && in.fin_arrives <= world_->events.now() &&
        receiver.life == end_state::open && receiver.error == trouble::none) {
        in.fin_arrived = true;
        any = true;
    }
    if (any) {
        tell(other(from));
        tell(from);
    }
}

bool connection::deliver_segment(side from) {
    pipe& in = pipe_from(from);
    const end_point& receiver = at(other(from));
    segment& first = in.segments.front();
    if (receiver.life != end_state::open || receiver.error != trouble::none) {
        in.unacknowledged += stalled(other(from)) ? in.under_way.size() : 0;
        in.under_way.clear();
        in.segments.clear();
        send_reset(other(from));
        return false;
    }
    const std::size_t window =
        std::max(world_->plan.receive_buffer, in.inbox.size()) - in.inbox.size();
    const std::size_t count = std::min(first.count, window);
    for (std::size_t index = 0; index < count; ++index) {
        in.inbox.push_back({.value = in.under_way.front(), .at = world_->events.now()});
        in.under_way.pop_front();
    }
    if (stalled(other(from))) {
        in.unacknowledged += count;
    }
    if (count < first.count) {
        first.count -= count;
        return false;
    }
    in.segments.pop_front();
    return true;
}

void connection::send_reset(side from) {
    ++world_->counts->resets;
    world_->log.note({name_of(from)}, "connection {}: RST", id_);
    world_->events.in(draw_delay(), [this, from] {
        if (!stalled(from)) {
            take_reset(other(from));
        }
    });
}

void connection::take_reset(side end) {
    end_point& mine = at(end);
    if (mine.life != end_state::open) {
        mine.life = end_state::dead;
        return;
    }
    if (mine.error != trouble::none) {
        return;
    }
    mine.error = trouble::reset;
    pipe& in = pipe_to(end);
    in.cut = true;
    if (!in.inbox.empty() && world_->random.chance(500'000)) {
        world_->log.note(network_actor(id_), "a reset destroys {} unread bytes", in.inbox.size());
        in.inbox.clear();
    }
    forget_outgoing(end);
    tell(end);
}

void connection::forget_outgoing(side from) {
    pipe& out = pipe_from(from);
    out.cut = true;
    out.under_way.clear();
    out.segments.clear();
}

void connection::tell(side end) {
    if (at(end).owner != nullptr && at(end).life == end_state::open) {
        at(end).owner->on_ready(*this);
    }
}

// ---- faults

bool connection::stall(side from, sim_time until) {
    pipe& out = pipe_from(from);
    troubled_ = true;
    if (until <= out.stalled_until) {
        return false;
    }
    out.stalled_until = until;
    const bool anybody_there = is_open(side::client) || is_open(side::server);
    const bool up = from == side::client;
    if (until == never) {
        world_->log.note(network_actor(id_), up ? "the client's packets are dropped from now on"
                                                : "the server's packets are dropped from now on");
        return anybody_there;
    }
    world_->log.note(
        network_actor(id_),
        up ? "the client's packets stall for {} us" : "the server's packets stall for {} us",
        (until - world_->events.now()).count() / 1000);
    world_->events.at(until, [this, from] { resume(from); });
    return anybody_there;
}

// What was lost has been sent again, acknowledgements included.
void connection::resume(side from) {
    if (stalled(from)) {
        return;
    }
    deliver(from);
    pipe& answered = pipe_to(from);
    if (answered.unacknowledged > 0) {
        answered.unacknowledged = 0;
        tell(other(from));
    }
}

bool connection::give_up(side end) {
    end_point& mine = at(end);
    if (mine.life != end_state::open || mine.error != trouble::none) {
        return false;
    }
    troubled_ = true;
    world_->log.note({name_of(end)}, "gives up connection {}: ETIMEDOUT", id_);
    mine.error = trouble::timed_out;
    forget_outgoing(end);
    tell(end);
    return true;
}

void connection::vanish(side end, sim_time until) {
    troubled_ = true;
    at(end).owner = nullptr;
    at(end).life = end_state::dead;
    if (world_->random.chance(500'000)) {
        forget_outgoing(end);  // else it was on its way already
    }
    pipe_to(end).inbox.clear();
    stall(other(end), until);
}

void connection::recover(bool drops_heal) {
    for (const side from : {side::client, side::server}) {
        if (drops_heal && pipe_from(from).stalled_until == never && is_open(other(from))) {
            pipe_from(from).stalled_until = world_->events.now();
            world_->events.in(draw_delay(), [this, from] { resume(from); });
        }
    }
}

}  // namespace monolock::simulation
