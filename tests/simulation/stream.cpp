#include "simulation/stream.hpp"

namespace monolock::simulation {

stream::stream(context& world, connection& link, side end) : link_{&link}, end_{end} {
    if (world.plan.over == transport::records) {
        records_.emplace(world, link, end);
    }
}

io_result stream::read(std::span<std::byte> into) {
    return records_ ? records_->read(into) : link_->read(end_, into);
}

io_result stream::write(std::span<const std::byte> bytes) {
    return records_ ? records_->write(bytes) : link_->write(end_, bytes);
}

void stream::say_close_notify() {
    if (records_) {
        records_->send_close_notify();
    }
}

void stream::shut_down_sending() {
    say_close_notify();
    link_->shut_down_sending(end_);
}

void stream::linger() {
    shut_down_sending();
    records_.reset();
}

void stream::close() {
    if (link_->is_open(end_)) {
        say_close_notify();
    }
    link_->close(end_);
}

sim_time stream::oldest_unread() const {
    return records_ ? records_->oldest_unread() : link_->oldest_unread(end_);
}

sim_time stream::last_read_arrived() const noexcept {
    return records_ ? records_->last_read_arrived() : link_->last_read_arrived(end_);
}

}  // namespace monolock::simulation
