// Case C11: resolving, connecting, and a stop at every point on the way.

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

// The system's resolver, played by the test: this program's own getaddrinfo answers for the one
// name "test-host", and everything numeric goes its usual way.
struct fake_resolver {
    std::mutex mutex;
    std::vector<std::uint16_t> ports;  // on 127.0.0.1, in this order
    std::atomic<int> calls{0};
    std::atomic<bool> hangs{false};
};

fake_resolver& resolver() {
    static fake_resolver instance;
    return instance;
}

// What getaddrinfo hands out and freeaddrinfo takes back.
struct entry {
    addrinfo info{};  // first, so that its address is the entry's
    sockaddr_storage address{};
};

template <class Address>
addrinfo* make_entry(const Address& address, int family, addrinfo* next) {
    auto* const made = new entry;
    std::memcpy(&made->address, &address, sizeof address);
    made->info.ai_family = family;
    made->info.ai_socktype = SOCK_STREAM;
    made->info.ai_addrlen = sizeof address;
    made->info.ai_addr = reinterpret_cast<sockaddr*>(&made->address);
    made->info.ai_next = next;
    return &made->info;
}

addrinfo* loopback_entry(std::uint16_t port, addrinfo* next) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return make_entry(address, AF_INET, next);
}

int numeric(const char* host, const char* port, addrinfo** out) {
    const auto number = htons(static_cast<std::uint16_t>(std::stoi(port)));
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = number;
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        *out = make_entry(four, AF_INET, nullptr);
        return 0;
    }
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = number;
    if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        *out = make_entry(six, AF_INET6, nullptr);
        return 0;
    }
    return EAI_NONAME;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the header's are reserved
// names.

int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** out) {
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        return numeric(host, port, out);
    }
    ++resolver().calls;
    while (resolver().hangs) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    const std::scoped_lock held{resolver().mutex};
    if (std::strcmp(host, "test-host") != 0 || resolver().ports.empty()) {
        return EAI_NONAME;
    }
    *out = nullptr;
    const std::vector<std::uint16_t> last_first{resolver().ports.rbegin(), resolver().ports.rend()};
    for (const std::uint16_t port_number : last_first) {
        *out = loopback_entry(port_number, *out);
    }
    return 0;
}

void freeaddrinfo(addrinfo* list) {
    while (list != nullptr) {
        addrinfo* const next = list->ai_next;
        delete reinterpret_cast<entry*>(list);
        list = next;
    }
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

}  // extern "C"

namespace monolock::testing {
namespace {

class c11_connecting : public ::testing::Test {
protected:
    void SetUp() override { set_ports({}); }

    static void set_ports(std::vector<std::uint16_t> ports) {
        const std::scoped_lock held{resolver().mutex};
        resolver().ports = std::move(ports);
        resolver().calls = 0;
        resolver().hangs = false;
    }

    // Stops a call that never succeeds once it has come where `reach` waits for it, each time anew.
    static void expect_prompt_stop(client& subject, const std::function<void()>& reach) {
        expect_timely([&]() -> std::string {
            std::stop_source stop;
            std::error_code reported;
            auto call = in_background([&] {
                return static_cast<bool>(
                    subject.acquire_retry("n", 10s, stop.get_token(), reported));
            });
            reach();
            const auto before = boot_clock::now();
            stop.request_stop();
            EXPECT_FALSE(call.get());
            const auto took = boot_clock::now() - before;
            EXPECT_EQ(reported, errc::stopped);
            EXPECT_EQ(reported, std::errc::operation_canceled);
            return took < prompt ? std::string{} : "took " + milliseconds_text(took);
        });
    }
};

TEST_F(c11_connecting, resolves_the_name_at_each_attempt) {
    scripted_server first;
    scripted_server second;
    set_ports({first.port()});
    auto subject = make_client("test-host:7070");
    EXPECT_EQ(resolver().calls, 0);
    auto call = in_background([&] { return static_cast<bool>(subject.acquire_retry("n", 10s)); });
    auto peer = first.accept();
    peer.expect_acquire("n", 10s);
    {
        const std::scoped_lock held{resolver().mutex};
        resolver().ports = {second.port()};  // the server moved
    }
    peer.close();
    auto moved = second.accept();
    moved.expect_acquire("n", 10s);
    moved.send(acquired_frame(7));
    EXPECT_TRUE(call.get());
    EXPECT_EQ(resolver().calls, 2);
}

TEST_F(c11_connecting, tries_all_addresses_and_gives_a_black_hole_only_its_share) {
    black_hole hole;
    scripted_server dead;
    dead.stop_listening();
    scripted_server server;
    set_ports({dead.port(), hole.port(), server.port()});
    client_options options;
    options.address = "test-host:7070";
    options.connect_timeout = 1s;
    client subject{std::move(options)};
    const auto before = boot_clock::now();
    auto call = in_background([&] { return static_cast<bool>(subject.acquire("n", 10s)); });
    auto peer = server.accept();
    const auto took = boot_clock::now() - before;
    EXPECT_GE(took, 490ms) << "half of what the first, refused at once, had left";
    EXPECT_LT(took, 1s) << "the last had a share too";
    peer.expect_acquire("n", 10s);
    peer.send(acquired_frame(7));
    EXPECT_TRUE(call.get());
}

TEST_F(c11_connecting, reports_the_systems_own_error) {
    scripted_server dead;
    dead.stop_listening();
    auto subject = make_client(dead.address());
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, std::errc::connection_refused);
    EXPECT_EQ(reported, condition::retryable);
    EXPECT_NE(reported, condition::claim_lost);
}

TEST_F(c11_connecting, reports_a_name_without_an_address) {
    auto subject = make_client("nowhere:7070");
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, errc::host_not_found);
}

TEST_F(c11_connecting, gives_up_after_the_connect_timeout) {
    black_hole hole;
    client_options options;
    options.address = hole.address();
    options.connect_timeout = 200ms;
    client subject{std::move(options)};
    const auto before = boot_clock::now();
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, errc::connect_timeout);
    EXPECT_EQ(reported, std::errc::timed_out);
    EXPECT_GE(boot_clock::now() - before, 200ms);
    EXPECT_LT(boot_clock::now() - before, 200ms + soon);
}

TEST_F(c11_connecting, the_longest_connect_timeout_of_all_is_not_over_at_once) {
    black_hole hole;
    client_options options;
    options.address = hole.address();
    options.connect_timeout = milliseconds::max();
    client subject{std::move(options)};
    std::error_code reported;
    EXPECT_FALSE(subject.acquire_for("n", 10s, 50ms, {}, reported));
    EXPECT_EQ(reported, errc::wait_expired);
}

TEST_F(c11_connecting, a_resolver_that_hangs_is_bounded_by_the_connect_timeout) {
    resolver().hangs = true;
    client_options options;
    options.address = "test-host:7070";
    options.connect_timeout = 100ms;
    client subject{std::move(options)};
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, errc::connect_timeout);
    EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
    EXPECT_EQ(reported, errc::connect_timeout);
    EXPECT_EQ(resolver().calls, 1) << "the second attempt joins the question under way";
    resolver().hangs = false;
}

TEST_F(c11_connecting, of_a_list_a_name_that_is_not_resolved_has_only_its_share) {
    resolver().hangs = true;
    scripted_server server;
    client_options options;
    options.address = "test-host:7070," + server.address();
    options.connect_timeout = 200ms;
    client subject{std::move(options)};
    auto call = in_background([&] { return static_cast<bool>(subject.acquire("n", 10s)); });
    auto peer = server.accept();
    resolver().hangs = false;  // its answer comes too late to matter
    peer.expect_acquire("n", 10s);
    std::this_thread::sleep_for(10ms);
    peer.send(acquired_frame(7));
    EXPECT_TRUE(call.get());
}

TEST_F(c11_connecting, of_a_list_each_name_is_resolved_at_each_attempt) {
    scripted_server server;
    auto subject = make_client("nowhere:7070,test-host:7070");
    set_ports({server.port()});
    for (int round = 1; round <= 2; ++round) {
        auto call = in_background([&] { return static_cast<bool>(subject.acquire("n", 10s)); });
        auto peer = server.accept();
        peer.expect_acquire("n", 10s);
        peer.send(acquired_frame(7));
        EXPECT_TRUE(call.get());
        EXPECT_EQ(resolver().calls, round + 1) << "the one that worked is asked alone";
    }
}

TEST_F(c11_connecting, a_stop_during_resolve_ends_the_call) {
    resolver().hangs = true;
    auto subject = make_client("test-host:7070");
    expect_prompt_stop(subject, [asked = 0]() mutable {
        ++asked;
        while (resolver().calls < asked) {
            std::this_thread::sleep_for(1ms);
        }
    });
    resolver().hangs = false;
}

TEST_F(c11_connecting, a_stop_during_connect_ends_the_call) {
    black_hole hole;
    auto subject = make_client(hole.address());
    expect_prompt_stop(subject, [] { std::this_thread::sleep_for(100ms); });
}

TEST_F(c11_connecting, a_stop_while_nothing_is_answered_ends_the_call_and_the_connection) {
    scripted_server server;
    auto subject = make_client(server.address());
    std::optional<peer> connection;
    expect_prompt_stop(subject, [&] {
        connection = server.accept();
        connection->expect_acquire("n", 10s);
    });
    EXPECT_TRUE(connection->ends_within(soon));
    EXPECT_FALSE(server.accept_within(0ms));
}

TEST_F(c11_connecting, a_stop_in_the_queue_ends_the_call_and_the_connection) {
    scripted_server server;
    auto subject = make_client(server.address());
    std::optional<peer> connection;
    expect_prompt_stop(subject, [&] {
        connection = server.accept();
        connection->expect_acquire("n", 10s);
        connection->send(waiting_frame);
        std::this_thread::sleep_for(20ms);
    });
    EXPECT_TRUE(connection->ends_within(soon));
}

TEST_F(c11_connecting, a_stop_during_backoff_ends_the_call) {
    scripted_server server;
    auto subject = make_client(server.address());
    expect_prompt_stop(subject, [&] {
        for (int round = 0; round < 3; ++round) {
            server.accept().send(error_frame(3, ""));
        }
        std::this_thread::sleep_for(10ms);  // the next delay is at least 200 ms
    });
}

TEST_F(c11_connecting, a_stop_during_a_dialer_that_ignores_it_ends_the_call) {
    struct shared {
        std::atomic<int> entered{0};
        std::atomic<bool> leave{false};
        std::atomic<bool> told{false};
    };
    const auto state = std::make_shared<shared>();
    client_options options;
    options.address = "anything:1";
    options.dialer = [state](const std::string&, const std::stop_token& stop) -> int {
        ++state->entered;
        while (!state->leave) {
            std::this_thread::sleep_for(1ms);
        }
        state->told = stop.stop_requested();
        throw std::system_error{std::make_error_code(std::errc::host_unreachable)};
    };
    client subject{std::move(options)};
    expect_prompt_stop(subject, [&state, calls = 0]() mutable {
        ++calls;
        while (state->entered < calls) {
            std::this_thread::sleep_for(1ms);
        }
    });
    state->leave = true;
    for (int round = 0; round < 1000 && !state->told; ++round) {
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(state->told);
}

TEST_F(c11_connecting, a_stopped_token_makes_no_connection) {
    scripted_server server;
    auto subject = make_client(server.address());
    std::stop_source stop;
    stop.request_stop();
    std::error_code reported;
    EXPECT_FALSE(subject.acquire("n", 10s, stop.get_token(), reported));
    EXPECT_EQ(reported, errc::stopped);
    subject.with_lock_retry(
        "n", 10s, [](const std::stop_token&, std::uint64_t) { FAIL(); }, stop.get_token(),
        reported);
    EXPECT_EQ(reported, errc::stopped);
    EXPECT_FALSE(server.accept_within(20ms));
}

TEST_F(c11_connecting, a_dialer_brings_its_own_connection) {
    scripted_server server;
    client_options options;
    options.address = "by-tunnel:1";
    options.dialer = [port = server.port()](const std::string& address, const std::stop_token&) {
        EXPECT_EQ(address, "by-tunnel:1");
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
        return fd;
    };
    client subject{std::move(options)};
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    auto peer = server.accept();
    peer.expect_acquire("n", 10s);
    peer.send(acquired_frame(9));
    EXPECT_EQ(call.get(), 9U);
}

TEST_F(c11_connecting, a_dialer_that_fails_is_reported_with_its_own_code) {
    const auto with_dialer = [](auto dialer) {
        client_options options;
        options.address = "x:1";
        options.dialer = dialer;
        client subject{std::move(options)};
        std::error_code reported;
        EXPECT_FALSE(subject.acquire("n", 10s, {}, reported));
        EXPECT_EQ(reported, condition::retryable);
        return reported;
    };
    using address = const std::string&;
    EXPECT_EQ(with_dialer([](address, const std::stop_token&) -> int {
                  throw std::system_error{std::make_error_code(std::errc::host_unreachable)};
              }),
              std::errc::host_unreachable);
    EXPECT_EQ(with_dialer([](address, const std::stop_token&) -> int { throw 1; }),
              errc::dialer_failed);
    EXPECT_EQ(with_dialer([](address, const std::stop_token&) { return -1; }), errc::dialer_failed);
    EXPECT_EQ(with_dialer([](address, const std::stop_token&) { return 1 << 20; }),
              errc::dialer_failed);
}

TEST_F(c11_connecting, over_a_unix_socket_even_when_its_queue_is_full) {
    const std::string path = ::testing::TempDir() + "monolock-" + std::to_string(::getpid());
    ::unlink(path.c_str());
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::strncpy(where.sun_path, path.c_str(), sizeof where.sun_path - 1);
    const posix::descriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    ASSERT_EQ(::listen(listener.get(), 0), 0);
    const posix::descriptor filler{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ASSERT_EQ(::connect(filler.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);

    auto subject = make_client("unix:" + path);
    auto call = in_background([&] { return subject.acquire("n", 10s).token(); });
    std::this_thread::sleep_for(50ms);
    const posix::descriptor first{::accept(listener.get(), nullptr, nullptr)};
    peer second{posix::descriptor{::accept(listener.get(), nullptr, nullptr)}};
    second.expect_acquire("n", 10s);
    second.send(acquired_frame(5));
    EXPECT_EQ(call.get(), 5U);
    ::unlink(path.c_str());
}

TEST_F(c11_connecting, from_the_local_address_asked_for) {
    scripted_server server;
    client_options options;
    options.address = server.address();
    options.local_address = "127.0.0.9";
    client subject{std::move(options)};
    auto call = in_background([&] { return subject.acquire("n", 10s); });
    auto peer = server.accept();
    peer.expect_acquire("n", 10s);
    peer.send(acquired_frame(5));
    const auto held = call.get();
    sockaddr_in local{};
    socklen_t size = sizeof local;
    ASSERT_EQ(::getsockname(held.native_handle(), reinterpret_cast<sockaddr*>(&local), &size), 0);
    EXPECT_EQ(ntohl(local.sin_addr.s_addr), 0x7f000009U);
}

TEST_F(c11_connecting, options_are_checked_when_the_client_is_made) {
    const auto code = [](const std::string& address, const std::string& local,
                         milliseconds timeout) {
        return code_of([&] {
            client_options options;
            options.address = address;
            options.local_address = local;
            options.connect_timeout = timeout;
            const client subject{std::move(options)};
        });
    };
    EXPECT_FALSE(code("host:7070", "", 1s));
    EXPECT_FALSE(code("[::1]:7070", "[::1]:9000", 1s));
    EXPECT_FALSE(code(":7070", "10.0.0.1", 1s));
    EXPECT_FALSE(code("unix:/x", "", 1s));
    EXPECT_EQ(code("", "", 1s), errc::invalid_address);
    EXPECT_EQ(code("::1:7070", "", 1s), errc::invalid_address);
    EXPECT_EQ(code("host:0", "", 1s), errc::invalid_address);
    EXPECT_EQ(code("host:70000", "", 1s), errc::invalid_address);
    EXPECT_EQ(code("host:7070", "not-numeric", 1s), errc::invalid_address);
    EXPECT_EQ(code("unix:/x", "10.0.0.1", 1s), errc::invalid_options);
    EXPECT_EQ(code("host:7070", "", 0ms), errc::invalid_options);
}

}  // namespace
}  // namespace monolock::testing
