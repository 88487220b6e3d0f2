// The mode leave: waiters close in the middle of their queues.

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "load/modes.hpp"
#include "protocol/frames.hpp"

namespace monolock::bench {
namespace {

// Queues of one length, and who leaves next. What a leave costs here does not depend on the length:
// who left is closed and stays in its vector, and nobody polls a waiter.
class queues {
public:
    queues(const target& to, const leave_options& options) {
        for (std::size_t queue = 0; queue < options.queues; ++queue) {
            const auto name = lock_name(queue);
            owners_.push_back(own(to, serial_++, name));
            auto& waiters = queues_.emplace_back();
            waiters.reserve(options.waiters);
            while (waiters.size() < options.waiters) {
                waiters.push_back(queue_up(to, serial_++, name));
            }
        }
        // The middle half of a queue, in an order that does not follow the server's memory.
        leavers_.resize(std::max<std::size_t>(options.waiters / 2, 1));
        std::iota(leavers_.begin(), leavers_.end(), options.waiters / 4);
        std::ranges::shuffle(leavers_, std::minstd_rand{});
    }

    [[nodiscard]] std::size_t leavers() const noexcept { return leavers_.size() * queues_.size(); }

    // The queues take turns.
    void leave() {
        queues_[left_ % queues_.size()][leavers_[left_ / queues_.size()]].close();
        ++left_;
    }

private:
    std::size_t serial_ = 0;
    std::vector<connection> owners_;
    std::vector<std::vector<connection>> queues_;
    std::vector<std::size_t> leavers_;
    std::size_t left_ = 0;
};

// A session beside the queues. One shard serves its sockets in the order in which something came,
// so when this one's heartbeat is answered, what was closed before it has left its queue.
class bystander {
public:
    bystander(const target& to, std::size_t serial) : claim_{own(to, serial, lock_name(serial))} {}

    void beat() {
        std::array<std::byte, protocol::acquired_bytes> frame{};
        claim_.send(protocol::heartbeat_frame);
        claim_.receive_frame(frame, static_cast<std::byte>(protocol::server_message::acquired));
    }

private:
    connection claim_;
};

}  // namespace

leave_result run_leave(const target& to, const leave_options& options) {
    queues all(to, options);
    bystander witness(to, 1'000'000);
    const auto leaves = std::min(options.leaves, all.leavers() / 2);
    if (leaves == 0) {
        throw measurement_error("the queues are too short for anybody to leave their middle");
    }

    leave_result result;
    witness.beat();
    for (std::size_t i = 0; i < leaves; ++i) {
        const auto closed = clock::now();
        all.leave();
        witness.beat();
        result.latency.add(clock::now() - closed);
    }

    const auto cpu_before = to.process.settled_cpu_time();
    for (std::size_t i = 0; i < leaves; ++i) {
        all.leave();
    }
    result.server_cpu = to.process.settled_cpu_time() - cpu_before;
    return result;
}

}  // namespace monolock::bench
