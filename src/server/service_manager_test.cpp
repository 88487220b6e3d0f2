#include "server/service_manager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "posix/descriptor.hpp"
#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

// Plays the service manager's end of the notify protocol.
class service_manager_test : public testing::Test {
protected:
    service_manager_test() {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        folder_.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(
            ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ::setenv("NOTIFY_SOCKET", address.sun_path, 1);
    }
    ~service_manager_test() override {
        ::unsetenv("NOTIFY_SOCKET");
        ::unsetenv("WATCHDOG_USEC");
        ::unsetenv("WATCHDOG_PID");
    }

    // The next message, or nothing.
    [[nodiscard]] std::string heard() const {
        std::array<char, 1024> message{};
        const ssize_t size = ::recv(socket_.get(), message.data(), message.size(), 0);
        return size < 0 ? std::string{}
                        : std::string{message.data(), static_cast<std::size_t>(size)};
    }

    loop loop_{one_thread_hint};
    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    monolock::test::scratch_folder folder_;
    posix::descriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
};

TEST_F(service_manager_test, is_told_how_the_server_fares) {
    service_manager manager{loop_, log_};
    manager.ready("serving on 127.0.0.1:7070");
    EXPECT_EQ(heard(), "READY=1\nSTATUS=serving on 127.0.0.1:7070");
    manager.status("something else");
    EXPECT_EQ(heard(), "STATUS=something else");
    manager.stopping(1500ms, "shutting down");
    EXPECT_EQ(heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=1500000\nSTATUS=shutting down");
}

TEST_F(service_manager_test, is_told_when_a_reload_began) {
    service_manager manager{loop_, log_};
    timespec before{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    manager.reloading();
    long long began = 0;
    const std::string message = heard();
    ASSERT_EQ(std::sscanf(message.c_str(), "RELOADING=1\nMONOTONIC_USEC=%lld\nSTATUS=", &began), 1)
        << message;
    const long long least = before.tv_sec * 1'000'000LL + before.tv_nsec / 1'000;
    EXPECT_GE(began, least);
    EXPECT_LT(began, least + 60'000'000);
}

TEST_F(service_manager_test, hears_of_no_way_back_from_the_end) {
    service_manager manager{loop_, log_};
    manager.stopping(1s, "shutting down");
    static_cast<void>(heard());
    manager.reloading();
    manager.ready("serving");
    EXPECT_EQ(heard(), "");
    manager.status("nearly gone");
    EXPECT_EQ(heard(), "STATUS=nearly gone");
}

TEST_F(service_manager_test, watches_only_if_it_says_so_to_us) {
    EXPECT_FALSE((service_manager{loop_, log_}.watches()));
    ::setenv("WATCHDOG_USEC", "10000000", 1);
    EXPECT_TRUE((service_manager{loop_, log_}.watches()));
    ::setenv("WATCHDOG_PID", "1", 1);  // meant for somebody else
    EXPECT_FALSE((service_manager{loop_, log_}.watches()));
}

TEST_F(service_manager_test, is_kept_assured_while_all_is_well_and_only_then) {
    ::setenv("WATCHDOG_USEC", "20000", 1);
    service_manager manager{loop_, log_};
    int asked = 0;
    manager.keep_alive_while([&] { return ++asked != 2; });
    while (asked < 1) {
        loop_.run_one();
    }
    EXPECT_EQ(heard(), "WATCHDOG=1");
    while (asked < 2) {
        loop_.run_one();
    }
    EXPECT_EQ(heard(), "");
    while (asked < 3) {
        loop_.run_one();
    }
    EXPECT_EQ(heard(), "WATCHDOG=1");
}

TEST_F(service_manager_test, is_not_waited_for) {
    service_manager manager{loop_, log_};
    const int many = 2'000;  // more than any queue of the kernel holds
    for (int count = 0; count < many; ++count) {
        manager.status(std::string(500, 'x'));
    }
    int kept = 0;
    while (!heard().empty()) {
        ++kept;
    }
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, many);
    manager.ready("serving");
    EXPECT_EQ(heard(), "READY=1\nSTATUS=serving") << "heard again";
}

TEST_F(service_manager_test, that_is_not_there_or_went_away_harms_nobody) {
    service_manager manager{loop_, log_};
    socket_.reset();
    manager.ready("serving");
    ::unsetenv("NOTIFY_SOCKET");
    manager.ready("serving");
    manager.keep_alive_while([] { return true; });
    EXPECT_EQ(loop_.run(), 0U) << "nobody watches, so nothing waits";
}

}  // namespace
}  // namespace monolock::server
