#include "server/lock_service.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/address.hpp"
#include "core/name_hash.hpp"
#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

// So many shards, the service over them, and the control loop on the test's thread.
class lock_service_stage : public testing::Test {
protected:
    explicit lock_service_stage(std::size_t shards) {
        around_.accepting.budget.open(4096);
        for (std::size_t number = 0; number < shards; ++number) {
            around_.shards.push_back(std::make_unique<shard>(around_, number));
        }
    }
    ~lock_service_stage() override {
        for (const auto& each : around_.shards) {
            each->stop_and_join();
        }
    }

    // The first so many; the others stand still.
    void start(std::size_t shards) {
        for (std::size_t number = 0; number < shards; ++number) {
            around_.shards[number]->start();
        }
    }

    // Runs the control loop until the service says that it is closed, and how.
    [[nodiscard]] std::optional<lock_service::outcome> closing(
        std::optional<core::nanoseconds> patience) {
        bool closed = false;
        std::optional<lock_service::outcome> outcome;
        service_.close(patience, [&](lock_service::outcome how) {
            closed = true;
            outcome = how;
        });
        run_until(closed);
        return outcome;
    }
    [[nodiscard]] bool closes(std::optional<core::nanoseconds> patience) {
        return closing(patience) == lock_service::outcome::all_ended;
    }
    void run_until(const bool& happened) {
        const auto end = std::chrono::steady_clock::now() + 10s;
        while (!happened && std::chrono::steady_clock::now() < end) {
            loop_.restart();
            loop_.run_one_for(10ms);
        }
    }

    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    shard_surroundings around_{.hasher = core::name_hasher{{}}, .io_timeout = 5s, .log = &log_};
    loop loop_{one_thread_hint};
    lock_service service_{loop_, around_};
};

// Two shards behind one port.
class lock_service_test : public lock_service_stage {
protected:
    lock_service_test() : lock_service_stage{2} {}

    void open() { service_.open(listener{config::unix_address{.path = path_}}); }

    [[nodiscard]] posix::descriptor connect() const {
        posix::descriptor connection{::socket(AF_UNIX, SOCK_STREAM, 0)};
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        std::memcpy(where.sun_path, path_.c_str(), path_.size());
        const auto* const address = reinterpret_cast<const sockaddr*>(&where);
        if (::connect(connection.get(), address, sizeof where) != 0) {
            connection.reset();
        }
        return connection;
    }
    [[nodiscard]] posix::descriptor claim(std::string_view name) const {
        posix::descriptor connection = connect();
        const auto frame = protocol::encode_acquire(60'000, name);
        EXPECT_EQ(::send(connection.get(), frame.bytes().data(), frame.bytes().size(), 0),
                  static_cast<ssize_t>(frame.bytes().size()));
        return connection;
    }
    // The first byte of the next frame; 0 at the end.
    static std::uint8_t type_of_next(const posix::descriptor& connection) {
        std::array<std::uint8_t, 64> bytes{};
        const ssize_t got = ::recv(connection.get(), bytes.data(), bytes.size(), 0);
        return got > 0 ? bytes[0] : std::uint8_t{0};
    }

    static constexpr auto acquired = static_cast<std::uint8_t>(protocol::server_message::acquired);
    static constexpr auto error = static_cast<std::uint8_t>(protocol::server_message::error);

    test::scratch_folder folder_;
    std::string path_ = folder_.path("locks");
};

TEST_F(lock_service_test, opens_closes_and_opens_again) {
    start(2);
    EXPECT_EQ(service_.addresses(), "");
    for (int round = 0; round < 3; ++round) {
        open();
        EXPECT_EQ(service_.addresses(), "unix:" + path_);
        const posix::descriptor owner = claim("mine");
        EXPECT_EQ(type_of_next(owner), acquired) << round;
        const posix::descriptor waiter = claim("mine");
        EXPECT_NE(type_of_next(waiter), 0);
        EXPECT_TRUE(closes({}));
        EXPECT_EQ(type_of_next(owner), error);
        EXPECT_EQ(type_of_next(waiter), error) << "and was not granted on the way";
        EXPECT_EQ(service_.addresses(), "");
        EXPECT_FALSE(connect()) << "nobody listens any more";
    }
}

TEST_F(lock_service_test, what_is_closed_says_so_at_once) {
    EXPECT_TRUE(closes({}));
    start(2);
    open();
    EXPECT_TRUE(closes({}));
    EXPECT_TRUE(closes(1s));
}

TEST_F(lock_service_test, who_asks_while_it_closes_is_told_as_well) {
    start(2);
    open();
    bool first = false;
    bool second = false;
    service_.close({}, [&first](lock_service::outcome) { first = true; });
    service_.close(5s, [&second](lock_service::outcome) { second = true; });
    run_until(second);
    EXPECT_TRUE(first && second);
}

TEST_F(lock_service_test, a_shard_that_stands_still_is_waited_for_as_long_as_patience_lasts) {
    start(1);
    open();
    EXPECT_EQ(closing(50ms), lock_service::outcome::some_stalled);
    EXPECT_EQ(closing(50ms), lock_service::outcome::all_ended) << "what is closed is closed";
}

// It was late with the first step, whose time is short, and not with the second.
TEST_F(lock_service_test, a_shard_that_comes_round_in_time_has_not_stalled) {
    start(1);
    open();
    const posix::descriptor owner = claim("mine");
    loop_timer wakes{loop_};
    wakes.expires_after(1200ms);
    wakes.async_wait([this](const boost::system::error_code&) { around_.shards[1]->start(); });
    EXPECT_TRUE(closes(10s));
}

TEST_F(lock_service_test, patience_may_come_later) {
    start(1);
    open();
    bool closed = false;
    service_.close({}, [&closed](lock_service::outcome how) {
        closed = true;
        EXPECT_EQ(how, lock_service::outcome::some_stalled);
    });
    loop_.restart();
    loop_.run_for(1200ms);  // the first step's time is over
    EXPECT_FALSE(closed) << "without patience it waits";
    EXPECT_EQ(closing(10ms), lock_service::outcome::some_stalled);
    EXPECT_TRUE(closed);
}

// More shards than the machine has processors: the control loop stands still between any two of
// them.
class lock_service_reopening_test : public lock_service_stage {
protected:
    lock_service_reopening_test() : lock_service_stage{16} { start(16); }

    // Each has claimed a lock of its own by the time that anybody accepts.
    static std::vector<posix::descriptor> waiting_claims(const listener& port, int count) {
        const std::string& where = port.sockets().front().address;
        std::uint16_t number = 0;
        std::from_chars(where.data() + where.rfind(':') + 1, where.data() + where.size(), number);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(number);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        std::vector<posix::descriptor> made;
        for (int each = 0; each < count; ++each) {
            made.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            EXPECT_EQ(::connect(made.back().get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
            const auto claim = protocol::encode_acquire(60'000, "lock " + std::to_string(each));
            EXPECT_EQ(
                ::send(made.back().get(), claim.bytes().data(), claim.bytes().size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(claim.bytes().size()));
        }
        return made;
    }

    static bool is_granted(const posix::descriptor& client) {
        std::array<std::byte, protocol::acquired_bytes> frame{};
        return ::recv(client.get(), frame.data(), frame.size(), MSG_WAITALL) ==
                   static_cast<ssize_t>(frame.size()) &&
               frame.front() == static_cast<std::byte>(protocol::server_message::acquired);
    }
};

// The first shard that is told to accept hands claims over to others that are not yet told.
TEST_F(lock_service_reopening_test, opens_again_and_again_while_clients_wait_at_the_port) {
    for (int round = 0; round < 40; ++round) {
        listener port{config::tcp_address{.host = "127.0.0.1", .port = 0}};
        const auto clients = waiting_claims(port, 32);
        service_.open(std::move(port));
        for (const auto& each : clients) {
            ASSERT_TRUE(is_granted(each)) << "in round " << round;
        }
        ASSERT_TRUE(closes(5s));
    }
}

}  // namespace
}  // namespace monolock::server
