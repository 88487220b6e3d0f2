#include <chrono>
#include <stdexcept>
#include <thread>

#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/pacing.hpp"
#include "in_memory/stage.hpp"
#include "load/latencies.hpp"

namespace monolock::bench::in_memory {

namespace {

using moment = network::moment;

void add(figures& to, const std::string& what, latencies& late) {
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"max", 1.0}}) {
        to[what + "_" + name + "_ms"] =
            std::chrono::duration<double, std::milli>(late.percentile(share)).count();
    }
}

void send_last_heartbeats(network& net, const expiry_options& options) {
    clients all{net};
    const auto order = clients::shuffled(options.sessions);
    if (!options.at_once) {
        pace(net, order.size(), options.lease / 4,
             [&](std::size_t place) { all.beat(order[place]); });
        return;
    }
    for (const std::uint32_t who : order) {
        all.beat(who);
    }
    net.announce();
}

void await_expiries(const stage& server, const expiry_options& options) {
    const time_point patience = clock::now() + 3 * options.lease + std::chrono::seconds{10};
    while (server.sessions() > options.waiters) {
        if (clock::now() > patience) {
            throw std::runtime_error{"not all sessions expire"};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
}

}  // namespace

// The lease counts from a clock reading that the server takes after `received`. So lateness is
// given from that moment, and none may have ended before that moment and the lease. (Not from
// `sent`, the answer: a thread may lose its core between its reading and its answer, for longer
// than expiries are late.)
figures run_expiry(const expiry_options& options) {
    const std::size_t owners = options.sessions;
    network net{owners + options.waiters};
    const stage server{net, options.shards};
    clients all{net};
    const auto has_waiter = [&](std::size_t waiter) { return waiter * owners / options.waiters; };
    const time_point claiming = clock::now();
    all.claim_all(0, owners, options.lease);
    for (std::size_t waiter = 0; waiter < options.waiters; ++waiter) {
        const std::size_t who = owners + waiter;
        all.claim_all(who, who + 1, long_lease, lock_name(has_waiter(waiter)));
    }
    if (clock::now() - claiming > options.lease / 2) {
        throw std::runtime_error{"the lease is too short for so many claims"};
    }
    net.record(true);
    send_last_heartbeats(net, options);
    std::this_thread::sleep_for(options.lease / 4);
    if (server.sessions() != owners + options.waiters) {
        throw std::runtime_error{"sessions expired before they fell silent"};
    }
    const auto cpu_before = server.cpu_time();
    await_expiries(server, options);
    const auto cpu = server.cpu_time() - cpu_before;

    latencies expiries;
    std::size_t early = 0;
    for (std::size_t who = 0; who < owners; ++who) {
        const time_point closed = net.when(who, moment::closed);
        expiries.add(closed - (net.when(who, moment::received) + options.lease));
        early += closed <= net.when(who, moment::received) + options.lease ? 1U : 0U;
    }
    latencies promotions;
    for (std::size_t waiter = 0; waiter < options.waiters; ++waiter) {
        const std::size_t who = owners + waiter;
        all.take(who, clients::answer::acquired);
        promotions.add(net.when(who, moment::sent) -
                       (net.when(has_waiter(waiter), moment::received) + options.lease));
    }

    figures result{{"sessions", owners},
                   {"waiters", options.waiters},
                   {"shards", options.shards},
                   {"lease_ms", options.lease.count()},
                   {"last_heartbeats", options.at_once ? "at once" : "spread over lease / 4"}};
    add(result, "late", expiries);
    result["early"] = early;
    add(result, "promotion_late", promotions);
    result["expired"] = server.ended(core::end_reason::expired);
    result["cpu_ns"] =
        static_cast<double>(cpu.count()) / static_cast<double>(options.sessions);  // of each
    return result;
}

}  // namespace monolock::bench::in_memory
