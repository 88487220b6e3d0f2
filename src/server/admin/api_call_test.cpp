#include "server/admin/api_call.hpp"

#include <gtest/gtest.h>

namespace monolock::server::admin {
namespace {

http::request request(std::string method, std::string target) {
    return {.method = std::move(method), .target = std::move(target), .fields = {}, .body = {}};
}

template <class Call>
Call call_of(const char* method, const char* target) {
    const auto understood = understand(request(method, target));
    const auto* const call = std::get_if<api_call>(&understood);
    EXPECT_TRUE(call != nullptr && std::holds_alternative<Call>(*call)) << method << ' ' << target;
    return call != nullptr && std::holds_alternative<Call>(*call) ? std::get<Call>(*call) : Call{};
}

int status_of(const char* method, const std::string& target) {
    const auto understood = understand(request(method, target));
    const auto* const no = std::get_if<http::response>(&understood);
    return no == nullptr ? 200 : static_cast<int>(no->code);
}

TEST(api_call, both_spellings_of_every_endpoint) {
    EXPECT_EQ(call_of<show_call>("GET", "/api/locks/a%2Fb").name, "a/b");
    EXPECT_EQ(call_of<show_call>("GET", "/api/lock?name=..").name, "..");
    EXPECT_EQ(call_of<release_call>("POST", "/api/locks/n/release").token, std::nullopt);
    EXPECT_EQ(call_of<release_call>("POST", "/api/locks/n/release?token=7").token, 7U);
    EXPECT_EQ(call_of<release_call>("POST", "/api/lock/release?token=7&name=n").name, "n");
    EXPECT_EQ(call_of<kick_call>("DELETE", "/api/locks/n/waiters/12").who, waiter_key{12U});
    EXPECT_EQ(call_of<kick_call>("DELETE", "/api/locks/n/waiters/%5B%3A%3A1%5D%3A5").who,
              waiter_key{*peer_address::parse("[::1]:5")});
    EXPECT_EQ(call_of<kick_call>("DELETE", "/api/lock/waiter?name=n&id=127.0.0.1:5").who,
              waiter_key{*peer_address::parse("127.0.0.1:5")});
    EXPECT_EQ(call_of<history_call>("GET", "/api/lock/history?name=n").name, "n");
    call_of<info_call>("GET", "/api/info");
    call_of<info_call>("HEAD", "/api/info");
    call_of<events_call>("GET", "/api/events");
}

TEST(api_call, parameters_of_a_listing) {
    const auto all = call_of<list_call>("GET", "/api/locks");
    EXPECT_FALSE(all.match || all.limit || all.after || all.snapshot);
    const auto page =
        call_of<list_call>("GET", "/api/locks?match=a*&limit=10&after=%25&snapshot=3");
    EXPECT_EQ(page.match, "a*");
    EXPECT_EQ(page.limit, 10U);
    EXPECT_EQ(page.after, "%");
    EXPECT_EQ(page.snapshot, 3U);
}

TEST(api_call, a_listing_that_is_sorted_is_a_window) {
    const auto first = call_of<window_call>("GET", "/api/locks?sort=name");
    EXPECT_FALSE(first.match);
    EXPECT_EQ(first.sort, listing_order::name);
    EXPECT_EQ(first.from, 0U);
    EXPECT_EQ(first.limit, 100U);
    EXPECT_EQ(first.waiters_max, 100U);
    const auto other =
        call_of<window_call>("GET", "/api/locks?match=a*&limit=50&waiters=0&from=150&sort=waiters");
    EXPECT_EQ(other.match, "a*");
    EXPECT_EQ(other.sort, listing_order::waiters);
    EXPECT_EQ(other.from, 150U);
    EXPECT_EQ(other.limit, 50U);
    EXPECT_EQ(other.waiters_max, 0U);
    EXPECT_EQ(call_of<window_call>("GET", "/api/locks?sort=held").sort, listing_order::held);
}

TEST(api_call, less_than_everything) {
    EXPECT_EQ(call_of<show_call>("GET", "/api/lock?name=n").waiters_max, std::nullopt);
    EXPECT_EQ(call_of<show_call>("GET", "/api/lock?name=n&waiters=0").waiters_max, 0U);
    EXPECT_EQ(call_of<show_call>("GET", "/api/locks/n?waiters=1000").waiters_max, 1000U);
    EXPECT_EQ(call_of<events_call>("GET", "/api/events").recent, 0U);
    EXPECT_EQ(call_of<events_call>("GET", "/api/events?recent=256").recent, 256U);
    EXPECT_FALSE(call_of<events_call>("GET", "/api/events").is_head);
    EXPECT_TRUE(call_of<events_call>("HEAD", "/api/events").is_head);
}

TEST(api_call, what_is_not_there) {
    for (const char* const target :
         {"/", "/api", "/api/", "/API/info", "/api/info/", "/api/lock/other", "/api/locks/a/b",
          "/api/locks/a/release/x", "/api/locks/a/waiters", "/api/locks/a/waiters/1/x",
          "//api/info"}) {
        EXPECT_EQ(status_of("GET", target), 404) << target;
    }
}

TEST(api_call, methods) {
    EXPECT_EQ(status_of("POST", "/api/info"), 405);
    EXPECT_EQ(status_of("GET", "/api/locks/n/release"), 405);
    EXPECT_EQ(status_of("HEAD", "/api/lock/release?name=n"), 405);
    EXPECT_EQ(status_of("POST", "/api/locks/n/waiters/1"), 405);
    EXPECT_EQ(status_of("OPTIONS", "/api/locks"), 405);
    EXPECT_EQ(status_of("get", "/api/locks"), 405) << "methods are case sensitive";
    const auto understood = understand(request("GET", "/api/lock/release"));
    const auto& no = std::get<http::response>(understood);
    ASSERT_EQ(no.fields.size(), 1U);
    EXPECT_EQ(no.fields[0].name, "Allow");
    EXPECT_EQ(no.fields[0].value, "POST");
}

TEST(api_call, mistakes_are_never_passed_over) {
    for (const char* const target : {"/api/locks?limit=0",
                                     "/api/locks?limit=",
                                     "/api/locks?limit=-1",
                                     "/api/locks?limit=1x",
                                     "/api/locks?limit=1000001",
                                     "/api/locks?limit=99999999999999999999",
                                     "/api/locks?limits=1",
                                     "/api/locks?limit=1&limit=2",
                                     "/api/locks?match=%FF",
                                     "/api/locks?after=%FF",
                                     "/api/locks?snapshot=x",
                                     "/api/lock",
                                     "/api/lock?name=",
                                     "/api/lock?name=%FF",
                                     "/api/lock?name=a&name=b",
                                     "/api/locks/",
                                     "/api/locks/%zz",
                                     "/api/locks/%0",
                                     "/api/locks/n?name=m",
                                     "/api/info?x",
                                     "/api/locks?sort=",
                                     "/api/locks?sort=age",
                                     "/api/locks?from=1",
                                     "/api/locks?waiters=1",
                                     "/api/locks?sort=name&after=a",
                                     "/api/locks?sort=name&snapshot=1",
                                     "/api/locks?sort=name&sort=name",
                                     "/api/locks?sort=name&from=-1",
                                     "/api/locks?sort=name&limit=0",
                                     "/api/locks?sort=name&waiters=101",
                                     "/api/lock?name=n&waiters=1000001",
                                     "/api/events?recent=257"}) {
        EXPECT_EQ(status_of("GET", target), 400) << target;
    }
    EXPECT_EQ(status_of("GET", "/api/locks?match=" + std::string(511, '*')), 200);
    EXPECT_EQ(status_of("GET", "/api/locks?match=" + std::string(512, '*')), 400);
    EXPECT_EQ(status_of("GET", "/api/lock?name=" + std::string(255, 'n')), 200);
    EXPECT_EQ(status_of("GET", "/api/lock?name=" + std::string(256, 'n')), 400);
    for (const char* const target :
         {"/api/lock/release", "/api/lock/release?name=n&tokn=5",
          "/api/lock/release?name=n&token=", "/api/locks/n/release?token=0x5"}) {
        EXPECT_EQ(status_of("POST", target), 400) << target;
    }
    for (const char* const target : {"/api/locks/n/waiters/", "/api/locks/n/waiters/x",
                                     "/api/lock/waiter?name=n", "/api/locks/n/waiters/1?id=2"}) {
        EXPECT_EQ(status_of("DELETE", target), 400) << target;
    }
}

}  // namespace
}  // namespace monolock::server::admin
