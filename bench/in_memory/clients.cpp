#include "in_memory/clients.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>

#include "protocol/frames.hpp"

namespace monolock::bench::in_memory {

namespace {

// How many requests are in flight. The server takes them in a few turns, and the wake-up before
// them counts for little.
constexpr std::size_t batch_max = 1024;

template <class Call>
void in_batches(std::size_t begin, std::size_t end, Call call) {
    for (std::size_t from = begin; from < end; from += batch_max) {
        call(from, std::min(end, from + batch_max));
    }
}

}  // namespace

std::string lock_name(std::size_t serial) {
    std::string digits = std::to_string(serial);
    digits.insert(0, 9 - std::min<std::size_t>(9, digits.size()), '0');
    return "bench/lock-" + digits;
}

std::vector<std::uint32_t> clients::shuffled(std::size_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.rbegin(), order.rend(), 0U);
    std::shuffle(order.begin(), order.end() - 1, std::minstd_rand{1});
    return order;
}

void clients::claim(std::size_t who, const std::string& name, std::chrono::milliseconds lease) {
    network_->connect(who);
    network_->write(
        who, protocol::encode_acquire(static_cast<std::uint32_t>(lease.count()), name).bytes());
}

void clients::beat(std::size_t who) {
    network_->write(who, protocol::heartbeat_frame);
}

clients::answer clients::take(std::size_t who) {
    std::array<std::byte, protocol::acquired_bytes> frame{};
    if (network_->read(who, std::span{frame}.first(1)) == 0) {
        return answer::none;
    }
    if (frame[0] == protocol::waiting_frame[0]) {
        return answer::waiting;
    }
    const bool acquired = frame[0] == static_cast<std::byte>(protocol::server_message::acquired);
    return acquired && network_->read(who, std::span{frame}.subspan(1)) == frame.size() - 1
               ? answer::acquired
               : answer::other;
}

void clients::take(std::size_t who, answer expected) {
    if (take(who) != expected) {
        throw std::runtime_error{"client " + std::to_string(who) + " got an unexpected answer"};
    }
}

void clients::claim_all(std::size_t begin, std::size_t end, std::chrono::milliseconds lease,
                        const std::optional<std::string>& name) {
    in_batches(begin, end, [&](std::size_t from, std::size_t to) {
        network_->expect(to - from);
        for (std::size_t who = from; who < to; ++who) {
            claim(who, name ? *name : lock_name(who), lease);
        }
        network_->announce();
        network_->await();
        for (std::size_t who = from; who < to; ++who) {
            if (const answer got = take(who);
                got != answer::acquired && (got != answer::waiting || !name)) {
                throw std::runtime_error{"a claim was refused"};
            }
        }
    });
}

void clients::beat_all(const std::vector<std::uint32_t>& who) {
    in_batches(0, who.size(), [&](std::size_t from, std::size_t to) {
        network_->expect(to - from);
        for (std::size_t i = from; i < to; ++i) {
            beat(who[i]);
        }
        network_->announce();
        network_->await();
        for (std::size_t i = from; i < to; ++i) {
            take(who[i], answer::acquired);
        }
    });
}

void clients::leave_all(const std::vector<std::uint32_t>& who) {
    in_batches(0, who.size(), [&](std::size_t from, std::size_t to) {
        network_->expect(to - from);
        for (std::size_t i = from; i < to; ++i) {
            leave(who[i]);
        }
        network_->announce();
        network_->await();
    });
}

}  // namespace monolock::bench::in_memory
