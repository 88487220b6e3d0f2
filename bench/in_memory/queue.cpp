#include <chrono>
#include <random>

#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/stage.hpp"
#include "load/latencies.hpp"

namespace monolock::bench::in_memory {

namespace {

using answer = clients::answer;

// As a client sees it, and the server's part: from the receive that found the end of a connection.
struct spans {
    latencies outside;
    latencies inside;
};

void add(figures& to, const std::string& what, spans& of) {
    to[what + "_p50_us"] = static_cast<double>(of.outside.percentile(0.5).count()) / 1e3;
    to[what + "_p99_us"] = static_cast<double>(of.outside.percentile(0.99).count()) / 1e3;
    to[what + "_inside_p50_ns"] = of.inside.percentile(0.5).count();
    to[what + "_inside_p99_ns"] = of.inside.percentile(0.99).count();
}

// One lock, whose owner has the lowest number that is left of the present round.
class one_queue {
public:
    one_queue(network& net, std::size_t members) : net_{&net}, members_{members}, all_{net} {
        all_.claim_all(0, members, long_lease, lock_name(0));
    }

    void promote(spans& into) {
        const std::size_t next = (owner_ + 1) % members_;
        leave(owner_, 2);  // the ACQUIRED of the next, and the close
        into.outside.add(clock::now() - left_at_);
        into.inside.add(net_->when(next, network::moment::sent) -
                        net_->when(owner_, network::moment::found_end));
        all_.take(next, answer::acquired);
        queue_up(owner_);
        owner_ = next;
    }

    // Afterwards the order of the queue is not that of the numbers any more.
    void leave_queue(std::size_t waiter, spans& into) {
        leave(waiter, 1);
        into.outside.add(clock::now() - left_at_);
        into.inside.add(net_->when(waiter, network::moment::closed) -
                        net_->when(waiter, network::moment::found_end));
        queue_up(waiter);
    }

    [[nodiscard]] std::size_t owner() const noexcept { return owner_; }

private:
    void leave(std::size_t who, std::size_t sends_and_closes) {
        net_->expect(sends_and_closes);
        left_at_ = clock::now();
        all_.leave(who);
        net_->announce();
        net_->await();
    }

    void queue_up(std::size_t who) {
        net_->expect(1);
        all_.claim(who, lock_name(0), long_lease);
        net_->announce();
        net_->await();
        all_.take(who, answer::waiting);
    }

    network* net_;
    std::size_t members_;
    clients all_;
    std::size_t owner_ = 0;
    time_point left_at_;
};

}  // namespace

figures run_queue(const queue_options& options) {
    network net{options.waiters + 1};
    const stage server{net, options.shards};
    one_queue queue{net, options.waiters + 1};
    net.record(true);

    spans promotions;
    for (std::size_t round = 0; round < options.rounds; ++round) {
        queue.promote(promotions);
    }
    spans leaves;
    std::minstd_rand random{1};
    std::uniform_int_distribution<std::size_t> waiter{1, options.waiters};
    for (std::size_t round = 0; round < options.rounds; ++round) {
        queue.leave_queue((queue.owner() + waiter(random)) % (options.waiters + 1), leaves);
    }

    figures result{{"waiters", options.waiters}, {"shards", options.shards}};
    add(result, "promotion", promotions);
    add(result, "leaving", leaves);
    return result;
}

}  // namespace monolock::bench::in_memory
