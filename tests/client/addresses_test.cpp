// A client with a list of addresses: which server it goes to, and when it goes on to another.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "honest_server.hpp"
#include "support.hpp"
#include "support/scratch_folder.hpp"

namespace monolock::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using state = scripted_server::state;

template <class... Servers>
std::string list_of(const Servers&... servers) {
    std::string text;
    ((text += (text.empty() ? "" : ",") + servers.address()), ...);
    return text;
}

// Lets the server grant the next claim, and the client release it.
void serve_one(client& subject, scripted_server& server) {
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
}

// The failure of an acquire while the server does something with the claim it gets.
template <class Answer>
std::error_code fail_at(client& subject, scripted_server& server, const Answer& answer,
                        milliseconds lease = 10s) {
    std::error_code reported;
    auto call =
        in_background([&] { return static_cast<bool>(subject.acquire("n", lease, {}, reported)); });
    auto connection = server.accept();
    connection.expect_acquire("n", lease);
    answer(connection);
    EXPECT_FALSE(call.get());
    return reported;
}

std::string detail_of(client& subject) {
    try {
        static_cast<void>(subject.acquire("n", 10s));
    } catch (const error& failed) {
        return failed.detail();
    }
    return "none";
}

TEST(address_list, a_refused_connection_leads_to_the_next_and_what_worked_comes_first) {
    scripted_server first{state::closed};
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    serve_one(subject, second);
    first.open();
    serve_one(subject, second);
    EXPECT_FALSE(first.accept_within(0ms)) << "what worked is tried first";
    second.stop_listening();
    serve_one(subject, first);
}

TEST(address_list, a_black_hole_has_only_its_share) {
    black_hole hole;
    scripted_server server;
    client_options options;
    options.address = list_of(hole, server);
    options.connect_timeout = 2s;
    client subject{std::move(options)};
    const auto before = boot_clock::now();
    serve_one(subject, server);
    EXPECT_GE(boot_clock::now() - before, 250ms);
    EXPECT_LT(boot_clock::now() - before, 1s) << "a share would be a second";
    const auto again = boot_clock::now();
    serve_one(subject, server);
    EXPECT_LT(boot_clock::now() - again, 250ms) << "it went to the end";
}

TEST(address_list, a_single_attempt_gives_silence_all_the_time_there_is) {
    black_hole hole;
    scripted_server standby{state::closed};
    client_options options;
    options.address = list_of(hole, standby);
    options.connect_timeout = 600ms;
    client subject{std::move(options)};
    const auto before = boot_clock::now();
    const std::string detail = detail_of(subject);
    EXPECT_GE(boot_clock::now() - before, 590ms);
    EXPECT_THAT(detail, HasSubstr(standby.address() + ": Connection refused; "));
    EXPECT_THAT(detail, HasSubstr(hole.address()));
}

TEST(address_list, when_all_refuse_the_first_ones_code_is_reported_with_all_addresses) {
    scripted_server first{state::closed};
    scripted_server second{state::closed};
    auto subject = make_client(list_of(first, second));
    EXPECT_EQ(detail_of(subject), second.address() + ": Connection refused; " + first.address());
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, std::errc::connection_refused);
}

TEST(address_list, a_claim_that_no_server_counts_moves_on_within_one_attempt) {
    scripted_server closes;
    scripted_server resets;
    scripted_server goes;
    scripted_server serves;
    std::vector<stage> stages;
    client_options options;
    options.address = list_of(closes, resets, goes, serves);
    options.on_stage = [&](std::string_view, stage entered) { stages.push_back(entered); };
    client subject{std::move(options)};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    auto closing = closes.accept();
    closing.expect_acquire("n", 10s);
    closing.close();
    auto resetting = resets.accept();
    resetting.expect_acquire("n", 10s);
    resetting.reset();
    auto going = goes.accept();
    going.expect_acquire("n", 10s);
    going.send(error_frame(1, "going"));
    auto serving = serves.accept();
    EXPECT_TRUE(going.ends_within(patience)) << "there is never more than one claim";
    serving.expect_acquire("n", 10s);
    serving.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
    EXPECT_THAT(stages, ElementsAre(stage::connecting, stage::requesting, stage::held))
        << "each once, however many servers were asked";
}

TEST(address_list, a_servers_refusal_is_an_answer) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    for (const std::uint8_t code : {std::uint8_t{0x18}, std::uint8_t{0x10}, std::uint8_t{0x17}}) {
        EXPECT_EQ(fail_at(subject, first, [&](peer& at) { at.send(error_frame(code, "no")); }),
                  static_cast<errc>(0x100 + code));
    }
    EXPECT_FALSE(second.accept_within(0ms));
}

TEST(address_list, another_kind_of_server_is_reported) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    EXPECT_EQ(fail_at(subject, first, [](peer& at) { at.send("HTTP/1.1 400 Bad Request"); }),
              errc::protocol_violation);
    EXPECT_FALSE(second.accept_within(0ms));
}

TEST(address_list, a_claim_in_doubt_goes_nowhere_else_but_the_next_one_does) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    const auto silent = [](peer& at) { EXPECT_TRUE(at.ends_within(patience)); };
    const auto reported = fail_at(subject, first, silent, 100ms);
    EXPECT_EQ(reported, errc::acquire_timeout);
    EXPECT_EQ(reported, condition::in_doubt);
    EXPECT_FALSE(second.accept_within(0ms));
    serve_one(subject, second);
}

TEST(address_list, a_claim_that_was_answered_goes_nowhere_else_but_the_next_one_does) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    EXPECT_EQ(fail_at(subject, first,
                      [](peer& at) {
                          at.send(waiting_frame);
                          at.send(error_frame(1, "going"));
                      }),
              errc::server_shutting_down);
    EXPECT_FALSE(second.accept_within(0ms));
    serve_one(subject, second);
}

TEST(address_list, an_administrators_word_says_nothing_about_the_server) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    EXPECT_EQ(fail_at(subject, first,
                      [](peer& at) {
                          at.send(waiting_frame);
                          at.send(error_frame(2, "kicked"));
                      }),
              errc::closed_by_administrator);
    serve_one(subject, first);
}

TEST(address_list, a_loss_while_held_names_the_server_and_sends_it_to_the_end) {
    scripted_server first;
    scripted_server second;
    auto subject = make_client(list_of(first, second));
    std::promise<void> works;
    auto call = in_background([&] {
        try {
            subject.with_lock("n", 10s, [&](const std::stop_token& stop, std::uint64_t) {
                works.set_value();
                while (!stop.stop_requested()) {
                    std::this_thread::sleep_for(1ms);
                }
            });
        } catch (const error& lost) {
            EXPECT_EQ(lost.code(), errc::connection_closed);
            EXPECT_EQ(lost.at(), stage::held);
            return std::string{lost.detail()};
        }
        return std::string{};
    });
    auto connection = first.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    works.get_future().wait();
    connection.close();
    EXPECT_EQ(call.get(), first.address());
    serve_one(subject, second);
}

// Whose own limit ends it before the lease could: a hung server must not be the first for ever.
TEST(address_list, a_wait_that_ran_out_without_an_answer_sends_the_server_to_the_end) {
    scripted_server hung;
    scripted_server server;
    auto subject = make_client(list_of(hung, server));
    std::error_code reported;
    EXPECT_FALSE(subject.acquire_for("n", 10s, 50ms, {}, reported));
    EXPECT_EQ(reported, errc::wait_expired);
    serve_one(subject, server);
}

TEST(address_list, a_short_wait_is_shared_too) {
    black_hole hole;
    scripted_server server;
    auto subject = make_client(list_of(hole, server));
    auto call = in_background([&] { return subject.acquire_for("n", 10s, 400ms).token(); });
    auto connection = server.accept();
    connection.expect_acquire("n", 10s);
    connection.send(acquired_frame(7));
    EXPECT_EQ(call.get(), 7U);
}

TEST(address_list, a_dialer_is_called_with_each_address) {
    scripted_server server;
    std::vector<std::string> called;
    client_options options;
    options.address = "a:1,unix:/b," + server.address();
    options.dialer = [&](const std::string& address, const std::stop_token&) -> int {
        called.push_back(address);
        if (called.size() < 3) {
            throw std::system_error{std::make_error_code(std::errc::host_unreachable)};
        }
        return server.connect();
    };
    client subject{std::move(options)};
    serve_one(subject, server);
    EXPECT_THAT(called, ElementsAre("a:1", "unix:/b", server.address()));
}

TEST(address_list, what_failed_goes_to_the_end_although_nothing_worked) {
    std::stop_source stop;
    std::vector<std::string> called;
    client_options options;
    options.address = "a:1,b:1,c:1";
    options.dialer = [&](const std::string& address, const std::stop_token&) -> int {
        called.push_back(address);
        if (called.size() == 3) {
            stop.request_stop();  // says nothing about the server
        }
        throw std::system_error{std::make_error_code(std::errc::host_unreachable)};
    };
    client subject{std::move(options)};
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, stop.get_token(), reported));
    EXPECT_EQ(reported, errc::stopped);
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, std::errc::host_unreachable);
    EXPECT_THAT(called, ElementsAre("a:1", "b:1", "c:1", "c:1", "a:1", "b:1"));
}

TEST(address_list, a_dialer_that_takes_too_long_is_stopped_and_what_it_brings_is_closed) {
    struct shared {
        std::atomic<bool> told{false};
        std::promise<void> done;
    };
    const auto slow = std::make_shared<shared>();
    scripted_server late;
    scripted_server server;
    client_options options;
    options.address = list_of(late, server);
    options.connect_timeout = 600ms;
    options.dialer = [slow, &late, &server](const std::string& address,
                                            const std::stop_token& stop) {
        if (address == server.address()) {
            slow->done.get_future().wait();
            std::this_thread::sleep_for(20ms);  // what the late one brings arrives while we dial
            return server.connect();
        }
        while (!stop.stop_requested()) {
            std::this_thread::sleep_for(1ms);
        }
        slow->told = true;
        const int made = late.connect();
        slow->done.set_value();
        return made;
    };
    client subject{std::move(options)};
    serve_one(subject, server);
    EXPECT_TRUE(slow->told);
    EXPECT_TRUE(late.accept().ends_within(patience)) << "no ACQUIRE, only the end";
}

TEST(address_list, unix_sockets_and_numbers_may_be_mixed) {
    test::scratch_folder folder;
    scripted_server server;
    auto subject = make_client("unix:" + folder.path("nobody") + "," + server.address());
    serve_one(subject, server);
}

TEST(address_list, what_is_wrong_with_it_is_said_when_the_client_is_made) {
    const auto wrong = [](const client_options& options) {
        try {
            const client made{options};
        } catch (const error& failed) {
            return failed.code().message() + ": " + failed.detail();
        }
        return std::string{"nothing"};
    };
    const auto with = [](const char* address) {
        client_options options;
        options.address = address;
        return options;
    };
    EXPECT_EQ(wrong(with("a:1,b:1")), "nothing");
    EXPECT_THAT(wrong(with("a:1, b:1")), HasSubstr("invalid address: address 2 of the list"));
    EXPECT_THAT(wrong(with("a:1,b:0")), HasSubstr("needs the server's port"));
    auto bound = with("10.0.0.1:1,unix:/b");
    bound.local_address = "127.0.0.1";
    EXPECT_THAT(wrong(bound), HasSubstr("local_address goes with a TCP address"));
    auto secured = with("a:1,unix:/b");
    secured.tls = tls_options{};
    EXPECT_THAT(wrong(secured), HasSubstr("the address has no host"));
    secured.tls->server_name = "locks.example";
    EXPECT_EQ(wrong(secured), "nothing");
}

// The active server dies; the next one opens when the delays have long reached their most. (With
// one address the fifth delay is 800 ms at least.)
TEST(address_list, a_retry_is_served_soon_after_the_next_server_opens) {
    expect_timely([]() -> std::string {
        constexpr auto most = 750ms;
        scripted_server active;
        scripted_server standby{state::closed};
        std::atomic<int> attempts{0};
        std::optional<boot_clock::time_point> last;
        boot_clock::duration longest{};
        client_options options;
        options.address = list_of(active, standby);
        options.on_stage = [&](std::string_view, stage entered) {
            if (entered == stage::connecting) {
                const auto now = boot_clock::now();
                longest = std::max(longest, now - last.value_or(now));
                last = now;
                ++attempts;
            }
        };
        client subject{std::move(options)};
        auto call = in_background([&] { return subject.acquire_retry("n", 10s).token(); });
        {
            auto connection = active.accept();
            connection.expect_acquire("n", 10s);
            connection.send(waiting_frame);
            active.stop_listening();
        }
        while (attempts < 6) {
            std::this_thread::sleep_for(1ms);
        }
        standby.open();
        auto connection = standby.accept();
        connection.expect_acquire("n", 10s);
        connection.send(acquired_frame(9));
        EXPECT_EQ(call.get(), 9U);
        return longest < most + prompt ? "" : "a delay of " + milliseconds_text(longest);
    });
}

// The machine of the active server is gone: nothing refuses there.
TEST(address_list, a_retry_is_served_soon_even_past_a_black_hole) {
    expect_timely([]() -> std::string {
        black_hole hole;
        scripted_server standby{state::closed};
        auto subject = make_client(list_of(hole, standby));
        auto call = in_background([&] { return subject.acquire_retry("n", 10s).token(); });
        std::this_thread::sleep_for(300ms);
        standby.open();
        const auto opened = boot_clock::now();
        auto connection = standby.accept();
        const auto took = boot_clock::now() - opened;
        connection.expect_acquire("n", 10s);
        connection.send(acquired_frame(9));
        EXPECT_EQ(call.get(), 9U);
        return took < 1300ms ? "" : "came after " + milliseconds_text(took);
    });
}

// All claims of a client share one order, from whatever thread.
TEST(address_list, many_claims_of_one_client_ride_through_failovers) {
    honest_server one;
    honest_server two;
    auto subject = make_client(list_of(one, two));
    constexpr unsigned threads = 8;
    std::atomic<int> rounds{0};
    std::stop_source stop;
    std::vector<std::future<void>> calls;
    two.stop();
    for (unsigned number = 0; number < threads; ++number) {
        calls.push_back(in_background([&, name = "n" + std::to_string(number)] {
            std::error_code lost;
            while (!stop.stop_requested()) {
                subject.with_lock_retry(
                    name, 10s, [&](const std::stop_token&, std::uint64_t) { ++rounds; },
                    stop.get_token(), lost);
            }
        }));
    }
    honest_server* active = &one;
    honest_server* standby = &two;
    const auto wait_for_grants = [](const honest_server& at) {
        constexpr std::uint64_t more = 2ULL * threads;
        const auto before = at.grants();
        const auto until = boot_clock::now() + patience;
        while (at.grants() < before + more && boot_clock::now() < until) {
            std::this_thread::sleep_for(1ms);
        }
        EXPECT_GE(at.grants(), before + more);
    };
    for (int failover = 0; failover < 3; ++failover) {
        wait_for_grants(*active);
        active->stop();
        std::swap(active, standby);
        active->start();
    }
    wait_for_grants(*active);
    stop.request_stop();
    for (auto& call : calls) {
        call.get();
    }
    EXPECT_EQ(one.strange_bytes() + two.strange_bytes(), 0U);
}

}  // namespace
}  // namespace monolock::testing
