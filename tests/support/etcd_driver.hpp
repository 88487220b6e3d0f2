#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "etcd/gateway.hpp"
#include "posix/boot_time.hpp"

namespace monolock::test {

inline config::etcd_endpoint loopback(
    std::uint16_t port, config::endpoint_scheme scheme = config::endpoint_scheme::http) {
    return {.scheme = scheme, .where = {.host = "127.0.0.1", .port = port}};
}

// A gateway and its caller: asks, and waits for what comes of it.
class etcd_driver {
public:
    // What a test waits for at most; none waits so long unless it fails.
    static constexpr std::chrono::seconds limit{20};

    explicit etcd_driver(etcd::gateway_options options) : gateway_{std::move(options)} {}

    [[nodiscard]] etcd::gateway& gateway() noexcept { return gateway_; }

    coordination::ticket send(coordination::request what) {
        const coordination::ticket made{++tickets_};
        gateway_.send(made, std::move(what));
        return made;
    }
    void watch(std::int64_t from) {
        gateway_.watch({from});
        std::erase_if(news_, [](const etcd::news& each) {
            return std::holds_alternative<coordination::watch_event>(each);
        });
    }

    // The next piece of news; all of it comes out in its order.
    std::optional<etcd::news> next(std::chrono::nanoseconds wait = limit) {
        return next_of([](const etcd::news&) { return true; }, wait);
    }

    // The answer to one request. Other news stay for later.
    coordination::answer ask(coordination::request what) {
        const coordination::ticket to = send(std::move(what));
        const auto told = next_of([to](const etcd::news& each) {
            const auto* const call = std::get_if<etcd::answered>(&each);
            return call != nullptr && call->to == to;
        });
        if (!told) {
            ADD_FAILURE() << "no answer";
            return coordination::failed{"none"};
        }
        return std::get<etcd::answered>(*told).what;
    }
    template <class Answer>
    Answer expect(coordination::request what) {
        const coordination::answer got = ask(std::move(what));
        if (const auto* const good = std::get_if<Answer>(&got)) {
            return *good;
        }
        const auto* const why = std::get_if<coordination::failed>(&got);
        ADD_FAILURE() << (why == nullptr ? "another answer" : why->why);
        return {};
    }
    std::string expect_failure(coordination::request what) {
        return expect<coordination::failed>(std::move(what)).why;
    }

    template <class Event>
    Event expect_event() {
        const auto news = next();
        const auto* const event = news ? std::get_if<coordination::watch_event>(&*news) : nullptr;
        if (event != nullptr && std::holds_alternative<Event>(*event)) {
            return std::get<Event>(*event);
        }
        const auto* const broken =
            event == nullptr ? nullptr : std::get_if<coordination::watch_broken>(event);
        ADD_FAILURE() << (broken == nullptr ? "another event, or none" : broken->why);
        return {};
    }

private:
    template <class Wanted>
    std::optional<etcd::news> next_of(Wanted wanted, std::chrono::nanoseconds wait = limit) {
        const auto until = posix::boot_now() + wait;
        for (;;) {
            const auto found = std::ranges::find_if(news_, wanted);
            if (found != news_.end()) {
                etcd::news taken = std::move(*found);
                news_.erase(found);
                return taken;
            }
            auto more = gateway_.poll(until);
            if (more.empty() && posix::boot_now() >= until) {
                return std::nullopt;
            }
            std::ranges::move(more, std::back_inserter(news_));
        }
    }

    etcd::gateway gateway_;
    std::vector<etcd::news> news_;
    std::uint64_t tickets_ = 0;
};

}  // namespace monolock::test
