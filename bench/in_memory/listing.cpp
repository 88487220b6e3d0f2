#include "server/admin/listing.hpp"

#include <atomic>
#include <chrono>
#include <iterator>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/stage.hpp"
#include "load/latencies.hpp"
#include "server/admin/survey.hpp"

namespace monolock::bench::in_memory {

namespace {

namespace admin = server::admin;

double milliseconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

// Heartbeats one at a time, of sessions here and there, for as long as `more` says: how long after
// one was written its answer was sent. When the client's thread gets to see that says more about
// the machine's scheduler.
template <class Predicate>
latencies probe(network& net, std::size_t sessions, Predicate more) {
    constexpr std::chrono::microseconds pause{100};
    clients all{net};
    latencies found;
    std::minstd_rand random{1};
    std::uniform_int_distribution<std::size_t> session{0, sessions - 1};
    do {
        const std::size_t who = session(random);
        net.expect(1);
        const time_point sent = clock::now();
        all.beat(who);
        net.announce();
        net.await();
        found.add(net.when(who, network::moment::sent) - sent);
        all.take(who, clients::answer::acquired);
        std::this_thread::sleep_for(pause);
    } while (more());
    return found;
}

// What the shards find of all locks.
class surveys {
public:
    explicit surveys(const stage& on) : found_(on.shards().size()), missing_{found_.size()} {
        for (std::size_t number = 0; number < found_.size(); ++number) {
            server::shard& each = *on.shards()[number];
            each.ask([this, &each, number] {
                admin::survey::begin(each, {}, [this, number](std::vector<admin::lock_view> found) {
                    found_[number] = std::move(found);
                    if (missing_.fetch_sub(1) == 1) {
                        done_at_ = clock::now();
                        is_done_ = true;
                    }
                });
            });
        }
    }

    [[nodiscard]] bool is_done() const noexcept { return is_done_; }
    // Only when it is done.
    [[nodiscard]] time_point done_at() const noexcept { return done_at_; }
    [[nodiscard]] std::vector<admin::lock_view> take() {
        std::vector<admin::lock_view> all;
        for (auto& of_one : found_) {
            std::move(of_one.begin(), of_one.end(), std::back_inserter(all));
        }
        return all;
    }

private:
    std::vector<std::vector<admin::lock_view>> found_;
    std::atomic<std::size_t> missing_;
    time_point done_at_;
    std::atomic<bool> is_done_{false};
};

void add(figures& to, const std::string& when, latencies& heartbeats,
         std::chrono::nanoseconds longest_turn) {
    to[when + "_heartbeats"] = heartbeats.count();
    to[when + "_heartbeat_p50_ms"] = milliseconds(heartbeats.percentile(0.5));
    to[when + "_heartbeat_p99_ms"] = milliseconds(heartbeats.percentile(0.99));
    to[when + "_heartbeat_max_ms"] = milliseconds(heartbeats.percentile(1));
    to[when + "_longest_turn_ms"] = milliseconds(longest_turn);
}

std::size_t json_bytes(std::shared_ptr<const admin::listing> of) {
    const std::size_t locks = of->locks.size();
    admin::listing_pages pages{std::move(of), {.begin = 0, .end = locks, .next = {}}};
    std::size_t bytes = 0;
    while (const auto piece = pages.piece()) {
        bytes += piece->size();
    }
    return bytes;
}

}  // namespace

figures run_listing(const listing_options& options) {
    network net{options.sessions};
    const stage server{net, options.shards};
    clients{net}.claim_all(0, options.sessions, long_lease);
    net.record(true);
    figures result{{"locks", options.sessions}, {"shards", options.shards}};

    static_cast<void>(net.take_longest_turn());
    const time_point until = clock::now() + options.alone;
    latencies alone = probe(net, options.sessions, [until] { return clock::now() < until; });
    add(result, "alone", alone, net.take_longest_turn());

    const time_point asked_at = clock::now();
    surveys all{server};
    latencies asked = probe(net, options.sessions, [&all] { return !all.is_done(); });
    add(result, "asked", asked, net.take_longest_turn());
    result["survey_ms"] = milliseconds(all.done_at() - asked_at);

    const time_point merging_at = clock::now();
    auto made = admin::make_listing(1, std::nullopt, admin::moment::now(), all.take());
    if (made->locks.size() != options.sessions) {
        throw std::runtime_error{"the listing is not whole"};
    }
    const time_point merged_at = clock::now();
    result["merge_ms"] = milliseconds(merged_at - merging_at);
    result["json_bytes"] = json_bytes(std::move(made));
    result["json_ms"] = milliseconds(clock::now() - merged_at);
    return result;
}

}  // namespace monolock::bench::in_memory
