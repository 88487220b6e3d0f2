#include "etcd/gateway.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "etcd/messages/answers.hpp"
#include "support/etcd_driver.hpp"
#include "support/scratch_folder.hpp"
#include "support/scripted_http.hpp"

// The gateway against servers that answer what a script says. What a true etcd says is in
// gateway_etcd_test.cpp.
namespace monolock::etcd {
namespace {

using namespace std::chrono_literals;
using coordination::active_deleted;
using coordination::look;
using coordination::seen;
using coordination::watch_broken;
using posix::boot_now;
using test::etcd_driver;
using test::loopback;
using test::scripted_http;
using test::visit;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Long enough for a machine that is busy; only what must run into it waits for it.
constexpr auto ample = 10s;
constexpr auto short_patience = 100ms;
// Where some of the answers are to come in time, and one is not.
constexpr auto middling = 500ms;

const std::string nothing_there = R"({"header":{"revision":"7"}})";
const std::string watching = R"({"result":{"header":{"revision":"7"},"created":true}})"
                             "\n";
// The key is /m/active.
const std::string deletion =
    R"({"result":{"header":{"revision":"9"},"events":[{"type":"DELETE","kv":{"key":"L20vYWN0aXZl","mod_revision":"9"}}]}})"
    "\n";
const std::string invalid_token =
    R"({"error":"etcdserver: invalid auth token","message":"etcdserver: invalid auth token","code":16})";

template <class... Servers>
gateway_options options_for(const Servers&... servers) {
    return {.endpoints = {loopback(servers.port())...}, .prefix = "/m/", .patience = ample};
}

void answer_look(const visit& here) {
    here.ok(nothing_there);
}

// A port of the loopback interface where nobody listens.
struct closed_port {
    std::uint16_t number = scripted_http{answer_look}.port();
    [[nodiscard]] std::uint16_t port() const { return number; }
};

TEST(gateway, asks_and_is_answered) {
    scripted_http server{answer_look};
    etcd_driver driver{options_for(server)};
    EXPECT_EQ(driver.expect<seen>(look{}).as_of.value, 7);
    EXPECT_THAT(server.paths(), ElementsAre("/v3/kv/range"));
}

TEST(gateway, keeps_its_connection) {
    std::atomic<int> connections{0};
    scripted_http server{[&](const visit& here) {
        connections = here.connection;
        here.ok(nothing_there);
    }};
    etcd_driver driver{options_for(server)};
    for (int count = 0; count < 3; ++count) {
        driver.expect<seen>(look{});
    }
    EXPECT_EQ(connections, 1);
}

TEST(gateway, a_kept_connection_may_be_closed_by_then) {
    scripted_http server{[&](const visit& here) {
        here.ok(nothing_there);
        here.close();
    }};
    etcd_driver driver{options_for(server)};
    driver.expect<seen>(look{});
    driver.expect<seen>(look{});
}

// Each waits for the other: were one queued behind the other, neither would be answered.
TEST(gateway, no_call_waits_behind_another) {
    std::atomic<int> here_now{0};
    scripted_http server{[&](const visit& here) {
        for (++here_now; here_now < 3;) {
            std::this_thread::yield();
        }
        here.ok(nothing_there);
    }};
    etcd_driver driver{options_for(server)};
    for (int count = 0; count < 3; ++count) {
        driver.send(look{});
    }
    for (int count = 0; count < 3; ++count) {
        const auto news = driver.next();
        ASSERT_TRUE(news);
        EXPECT_TRUE(std::holds_alternative<seen>(std::get<answered>(*news).what));
    }
}

TEST(gateway, sends_nothing_before_it_is_polled) {
    scripted_http server{answer_look};
    etcd_driver driver{options_for(server)};
    driver.send(look{});
    EXPECT_THAT(server.paths(), ElementsAre());
    EXPECT_TRUE(driver.next());
    EXPECT_EQ(server.paths().size(), 1U);
}

TEST(gateway, does_not_wait_longer_than_its_patience) {
    scripted_http silent{[](const visit& here) { here.wait_for_the_end(); }};
    scripted_http well{answer_look};
    auto options = options_for(silent, well);
    options.patience = short_patience;
    etcd_driver driver{options};
    const auto begin = boot_now();
    EXPECT_THAT(driver.expect_failure(look{}),
                AllOf(StartsWith(config::to_string(loopback(silent.port()))),
                      HasSubstr("no answer within 100 ms")));
    EXPECT_GE(boot_now() - begin, short_patience);
}

TEST(gateway, goes_on_to_the_next_endpoint_and_stays_there) {
    scripted_http broken{[](const visit& here) { here.answer("503 Unavailable", "no JSON"); }};
    scripted_http well{answer_look};
    const closed_port nobody;
    etcd_driver driver{options_for(broken, nobody, well)};
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("HTTP status 503"));
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr(std::to_string(nobody.port())));
    for (int count = 0; count < 3; ++count) {
        driver.expect<seen>(look{});
    }
    EXPECT_EQ(broken.paths().size(), 1U);
}

TEST(gateway, begins_again_behind_the_last_endpoint) {
    std::atomic<bool> well{false};
    scripted_http first{[&](const visit& here) {
        here.answer(well ? "200 OK" : "500 Odd", well ? nothing_there : "");
    }};
    const closed_port nobody;
    etcd_driver driver{options_for(first, nobody)};
    driver.expect_failure(look{});
    well = true;
    driver.expect_failure(look{});
    driver.expect<seen>(look{});
}

TEST(gateway, keeps_an_endpoint_whose_error_is_etcds_own) {
    scripted_http server{[](const visit& here) {
        here.answer("403 Forbidden", R"({"error":"etcdserver: permission denied","code":7})");
    }};
    const closed_port nobody;
    etcd_driver driver{options_for(server, nobody)};
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("permission denied"));
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("permission denied"));
}

TEST(gateway, an_answer_that_is_cut_off_is_none) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n";
    for (const std::string& part :
         {std::string{}, head.substr(0, 10), head, head + R"({"header":)",
          std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\n{\"header\""}}) {
        scripted_http server{[&](const visit& here) {
            here.send(part);
            here.close();
        }};
        etcd_driver driver{options_for(server)};
        EXPECT_NE(driver.expect_failure(look{}), "") << part;
    }
}

TEST(gateway, an_answer_that_comes_in_drops_has_no_longer_time) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        for (int count = 0; count < 20; ++count) {
            here.chunk(" ");
            std::this_thread::sleep_for(10ms);
        }
        here.chunk(nothing_there);
        here.end_chunks();
    }};
    auto options = options_for(server);
    options.patience = short_patience;
    etcd_driver driver{options};
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("no answer within 100 ms"));
}

TEST(gateway, an_answer_in_pieces_is_one) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        for (const char& byte : nothing_there) {
            here.chunk({&byte, 1});
        }
        here.end_chunks();
    }};
    etcd_driver driver{options_for(server)};
    driver.expect<seen>(look{});
}

TEST(gateway, an_answer_has_its_bound) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        const std::size_t blanks = answer_bytes_max - nothing_there.size();
        here.chunk(std::string(here.request == 1 ? blanks : blanks + 1, ' ') + nothing_there);
        here.end_chunks();
    }};
    etcd_driver driver{options_for(server)};
    driver.expect<seen>(look{});
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("too long"));
}

TEST(gateway, what_is_no_answer_of_etcd_is_refused) {
    for (const char* const content : {"", "<html>", "{}", "[]", R"({"header":{}})"}) {
        scripted_http server{[&](const visit& here) { here.ok(content); }};
        etcd_driver driver{options_for(server)};
        EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("an odd answer: ")) << content;
    }
}

TEST(gateway, follows_no_redirection) {
    scripted_http elsewhere{answer_look};
    scripted_http server{[&](const visit& here) {
        here.send("HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:" +
                  std::to_string(elsewhere.port()) + "/v3/kv/range\r\nContent-Length: 0\r\n\r\n");
    }};
    etcd_driver driver{options_for(server)};
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("HTTP status 307"));
    EXPECT_THAT(elsewhere.paths(), ElementsAre());
}

TEST(gateway, takes_no_proxy_of_the_environment) {
    const closed_port nobody;
    const std::string proxy = "http://127.0.0.1:" + std::to_string(nobody.port());
    for (const char* const name : {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"}) {
        ::setenv(name, proxy.c_str(), 1);
    }
    scripted_http server{answer_look};
    etcd_driver driver{options_for(server)};
    driver.expect<seen>(look{});
    for (const char* const name : {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"}) {
        ::unsetenv(name);
    }
}

// As a process does that was stopped: its time is over when it looks again, and the answer is
// there.
TEST(gateway, looks_for_an_answer_before_it_gives_up) {
    std::atomic<bool> may_write{false};
    std::atomic<bool> written{false};
    scripted_http server{[&](const visit& here) {
        while (!may_write) {
            std::this_thread::yield();
        }
        here.ok(nothing_there);
        written = true;
    }};
    auto options = options_for(server);
    options.patience = middling;
    etcd_driver driver{options};
    driver.send(look{});
    const auto begin = boot_now();
    // The request goes out within the first few turns.
    while (server.paths().empty()) {
        ASSERT_THAT(driver.gateway().poll(boot_now()), testing::IsEmpty());
    }
    may_write = true;
    while (!written || boot_now() <= begin + options.patience) {
        std::this_thread::sleep_for(5ms);
    }
    const auto told = driver.gateway().poll(boot_now());
    ASSERT_EQ(told.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<seen>(std::get<answered>(told[0]).what));
}

TEST(gateway, poll_returns_at_its_time) {
    const closed_port nobody;
    etcd_driver driver{options_for(nobody)};
    const auto until = boot_now() + 5ms;
    EXPECT_THAT(driver.gateway().poll(until), testing::IsEmpty());
    EXPECT_GE(boot_now(), until);
    EXPECT_THAT(driver.gateway().poll(boot_now() - 1h), testing::IsEmpty());
}

TEST(gateway, wakes_for_another_thread) {
    const closed_port nobody;
    etcd_driver driver{options_for(nobody)};
    const auto never = coordination::time_point::max();
    driver.gateway().wake();
    driver.gateway().wake();
    EXPECT_THAT(driver.gateway().poll(never), testing::IsEmpty());
    std::thread other{[&] {
        std::this_thread::sleep_for(5ms);
        driver.gateway().wake();
    }};
    EXPECT_THAT(driver.gateway().poll(never), testing::IsEmpty());
    other.join();
}

TEST(gateway, can_be_dropped_with_everything_under_way) {
    scripted_http silent{[](const visit& here) { here.wait_for_the_end(); }};
    etcd_driver driver{options_for(silent)};
    driver.send(look{});
    driver.watch(8);
    while (silent.paths().size() < 2) {
        ASSERT_THAT(driver.gateway().poll(boot_now() + 1ms), testing::IsEmpty());
    }
    driver.send(look{});
}

// --- the watch

TEST(gateway_watch, tells_events_however_they_come) {
    scripted_http server{[](const visit& here) {
        if (here.path == "/v3/kv/range") {
            return here.ok(nothing_there);
        }
        here.begin_chunks();
        for (const char& byte : watching + deletion) {
            here.chunk({&byte, 1});
        }
        here.wait_for_the_end();
    }};
    etcd_driver driver{options_for(server)};
    driver.watch(8);
    EXPECT_EQ(driver.expect_event<active_deleted>().at.value, 9);
    // On a connection of its own.
    driver.expect<seen>(look{});
    EXPECT_THAT(server.paths(), ElementsAre("/v3/watch", "/v3/kv/range"));
}

TEST(gateway_watch, says_once_that_it_broke_off) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        here.chunk(watching + deletion);
        here.end_chunks();
    }};
    etcd_driver driver{options_for(server)};
    driver.watch(8);
    driver.expect_event<active_deleted>();
    EXPECT_THAT(driver.expect_event<watch_broken>().why,
                AllOf(StartsWith(config::to_string(loopback(server.port()))),
                      HasSubstr("its stream ended")));
    EXPECT_FALSE(driver.next(20ms));
    // And can begin again.
    driver.watch(9);
    driver.expect_event<active_deleted>();
}

TEST(gateway_watch, ends_at_an_odd_line) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        here.chunk(watching + "[]\n" + deletion);
        here.wait_for_the_end();
    }};
    etcd_driver driver{options_for(server)};
    driver.watch(8);
    EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("an odd message"));
    EXPECT_FALSE(driver.next(20ms));
}

TEST(gateway_watch, is_established_within_the_patience) {
    scripted_http silent{[](const visit& here) {
        if (here.request == 2) {
            here.begin_chunks();
        }
        here.wait_for_the_end();
    }};
    auto options = options_for(silent);
    options.patience = short_patience;
    etcd_driver driver{options};
    for (int count = 0; count < 2; ++count) {
        driver.watch(8);
        EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("no answer within 100 ms"));
    }
}

TEST(gateway_watch, may_be_silent_for_a_while) {
    scripted_http silent{[](const visit& here) {
        here.begin_chunks();
        here.chunk(watching);
        here.wait_for_the_end();
    }};
    auto options = options_for(silent);
    options.patience = middling;
    {
        etcd_driver driver{options};
        driver.watch(8);
        EXPECT_FALSE(driver.next(middling + 50ms));
    }
    options.watch_silence_max = 120ms;
    etcd_driver driver{options};
    const auto begin = boot_now();
    driver.watch(8);
    EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("silence within 120 ms"));
    EXPECT_GE(boot_now() - begin, options.watch_silence_max);
}

TEST(gateway_watch, goes_on_to_the_next_endpoint) {
    const closed_port nobody;
    scripted_http refusing{[](const visit& here) { here.answer("404 Not Found", "no page"); }};
    scripted_http well{[](const visit& here) {
        here.begin_chunks();
        here.chunk(watching + deletion);
        here.wait_for_the_end();
    }};
    etcd_driver driver{options_for(nobody, refusing, well)};
    driver.watch(8);
    driver.expect_event<watch_broken>();
    driver.watch(8);
    EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("HTTP status 404"));
    driver.watch(8);
    driver.expect_event<active_deleted>();
}

TEST(gateway_watch, tells_nothing_once_stopped) {
    scripted_http server{[](const visit& here) {
        here.begin_chunks();
        here.chunk(watching + deletion);
        here.wait_for_the_end();
    }};
    etcd_driver driver{options_for(server)};
    driver.gateway().stop_watching();
    driver.watch(8);
    driver.gateway().stop_watching();
    EXPECT_FALSE(driver.next(20ms));
    // One takes the place of another: the first has told nothing then.
    driver.watch(8);
    driver.watch(8);
    driver.expect_event<active_deleted>();
    EXPECT_FALSE(driver.next(20ms));
}

// --- authentication

class gateway_authentication : public testing::Test {
protected:
    // Hands out the token "t1", then "t2" and so on; takes only the newest one.
    void serve(const visit& here) {
        if (here.path == "/v3/auth/authenticate") {
            EXPECT_THAT(here.body, HasSubstr(R"("password":"p:w")"));
            EXPECT_THAT(here.head, testing::Not(HasSubstr("Authorization")));
            return here.ok(R"({"token":"t)" + std::to_string(++tokens_) + "\"}");
        }
        if (here.head.find("\r\nAuthorization: t" + std::to_string(tokens_)) == std::string::npos) {
            return here.answer("401 Unauthorized", invalid_token);
        }
        if (here.path == "/v3/watch") {
            here.begin_chunks();
            here.chunk(watching + deletion);
            return here.wait_for_the_end();
        }
        here.ok(nothing_there);
    }
    gateway_options options() {
        auto made = options_for(server_);
        made.user_file = folder_.write("user", "monolock:p:w\n");
        return made;
    }

    std::atomic<int> tokens_{0};
    test::scratch_folder folder_;
    scripted_http server_{[this](const visit& here) { serve(here); }};
};

TEST_F(gateway_authentication, comes_first) {
    etcd_driver driver{options()};
    driver.expect<seen>(look{});
    driver.expect<seen>(look{});
    EXPECT_THAT(server_.paths(),
                ElementsAre("/v3/auth/authenticate", "/v3/kv/range", "/v3/kv/range"));
}

TEST_F(gateway_authentication, is_done_once_for_all_that_wait) {
    etcd_driver driver{options()};
    driver.watch(8);
    driver.send(look{});
    driver.send(look{});
    for (int count = 0; count < 3; ++count) {
        ASSERT_TRUE(driver.next());
    }
    EXPECT_EQ(tokens_, 1);
}

TEST_F(gateway_authentication, is_renewed_when_the_token_expired) {
    etcd_driver driver{options()};
    driver.expect<seen>(look{});
    ++tokens_;  // t1 is no good any more
    driver.expect<seen>(look{});
    EXPECT_THAT(server_.paths(),
                ElementsAre("/v3/auth/authenticate", "/v3/kv/range", "/v3/kv/range",
                            "/v3/auth/authenticate", "/v3/kv/range"));
}

TEST_F(gateway_authentication, of_two_calls_with_an_old_token_one_renews_it) {
    etcd_driver driver{options()};
    driver.expect<seen>(look{});
    ++tokens_;
    driver.send(look{});
    driver.send(look{});
    for (int count = 0; count < 2; ++count) {
        const auto news = driver.next();
        ASSERT_TRUE(news);
        EXPECT_TRUE(std::holds_alternative<seen>(std::get<answered>(*news).what));
    }
}

TEST_F(gateway_authentication, a_watch_with_an_old_token_breaks_off_and_the_next_has_a_new_one) {
    etcd_driver driver{options()};
    driver.expect<seen>(look{});
    ++tokens_;
    driver.watch(8);
    EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("invalid auth token"));
    driver.watch(8);
    driver.expect_event<active_deleted>();
}

TEST_F(gateway_authentication, reads_its_file_each_time) {
    auto changed = options();
    folder_.write("user", "monolock:old\n");
    scripted_http server{[](const visit& here) {
        if (here.path != "/v3/auth/authenticate") {
            return here.ok(nothing_there);
        }
        if (here.body.find("p:w") == std::string::npos) {
            return here.answer(
                "400 Bad Request",
                R"({"error":"etcdserver: authentication failed, invalid user ID or password","code":3})");
        }
        here.ok(R"({"token":"t"})");
    }};
    changed.endpoints = {loopback(server.port())};
    etcd_driver driver{changed};
    EXPECT_THAT(driver.expect_failure(look{}),
                AllOf(StartsWith("no token: "), HasSubstr("invalid user ID or password")));
    folder_.write("user", "monolock:p:w\n");
    driver.expect<seen>(look{});
}

TEST_F(gateway_authentication, says_what_is_wrong_with_its_file) {
    auto wrong = options();
    folder_.write("user", "monolock\n");
    etcd_driver driver{wrong};
    EXPECT_THAT(driver.expect_failure(look{}),
                AllOf(HasSubstr(folder_.path("user")), HasSubstr("user:password")));
    driver.watch(8);
    EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("user:password"));
    wrong.user_file = folder_.path("missing");
    etcd_driver without{wrong};
    EXPECT_THAT(without.expect_failure(look{}), HasSubstr("No such file"));
    EXPECT_THAT(server_.paths(), ElementsAre());
}

TEST_F(gateway_authentication, a_token_that_is_never_good_enough_is_renewed_once) {
    scripted_http server{[](const visit& here) {
        if (here.path == "/v3/auth/authenticate") {
            return here.ok(R"({"token":"t"})");
        }
        here.answer("401 Unauthorized", invalid_token);
    }};
    auto never = options();
    never.endpoints = {loopback(server.port())};
    etcd_driver driver{never};
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("invalid auth token"));
    EXPECT_EQ(server.paths().size(), 4U);
}

TEST_F(gateway_authentication, has_the_same_patience) {
    scripted_http silent{[](const visit& here) { here.wait_for_the_end(); }};
    auto slow = options();
    slow.endpoints = {loopback(silent.port())};
    slow.patience = short_patience;
    etcd_driver driver{slow};
    driver.watch(8);
    driver.send(look{});
    driver.send(look{});
    for (int count = 0; count < 3; ++count) {
        const auto news = driver.next();
        ASSERT_TRUE(news);
        const auto* const call = std::get_if<answered>(&*news);
        const std::string why =
            call != nullptr
                ? std::get<coordination::failed>(call->what).why
                : std::get<watch_broken>(std::get<coordination::watch_event>(*news)).why;
        EXPECT_THAT(why, AllOf(HasSubstr("no token"), HasSubstr("within 100 ms")));
    }
}

TEST_F(gateway_authentication, that_hangs_is_one_reason_to_go_on_for_all_that_wait_for_it) {
    std::atomic<int> authentications{0};
    scripted_http hanging{[&](const visit& here) {
        if (here.path == "/v3/auth/authenticate") {
            return ++authentications == 1 ? here.ok(R"({"token":"x"})") : here.wait_for_the_end();
        }
        here.request == 2 ? here.ok(nothing_there) : here.answer("401 Unauthorized", invalid_token);
    }};
    const closed_port nobody;
    auto three = options();
    three.endpoints = {loopback(hanging.port()), loopback(server_.port()), loopback(nobody.port())};
    three.patience = middling;
    etcd_driver driver{three};
    driver.expect<seen>(look{});
    driver.send(look{});
    driver.send(look{});
    for (int count = 0; count < 2; ++count) {
        ASSERT_TRUE(driver.next());
    }
    driver.expect<seen>(look{});
}

TEST_F(gateway_authentication, is_left_out_where_etcd_wants_none) {
    scripted_http server{[](const visit& here) {
        if (here.path == "/v3/auth/authenticate") {
            return here.answer("412 Precondition Failed",
                               R"({"error":"etcdserver: authentication is not enabled","code":9})");
        }
        EXPECT_THAT(here.head, testing::Not(HasSubstr("Authorization")));
        here.ok(nothing_there);
    }};
    auto off = options();
    off.endpoints = {loopback(server.port())};
    etcd_driver driver{off};
    driver.expect<seen>(look{});
    driver.expect<seen>(look{});
    EXPECT_EQ(server.paths().size(), 3U);
}

TEST(gateway, says_that_etcd_wants_a_user) {
    scripted_http server{[](const visit& here) {
        here.answer("400 Bad Request", R"({"error":"etcdserver: user name is empty","code":3})");
    }};
    etcd_driver driver{options_for(server)};
    EXPECT_THAT(driver.expect_failure(look{}),
                HasSubstr("user name is empty, and no user file is given"));
}

}  // namespace
}  // namespace monolock::etcd
