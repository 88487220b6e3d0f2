#include "server/listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

using test::scratch_folder;

// The one line with which a listener refuses an address, or nothing if it listens.
std::optional<std::string> refusal(const config::address& where) {
    try {
        const listener refused{where};
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return std::nullopt;
}

std::uint16_t port_of(const listener& one) {
    const std::string address = one.sockets().front().address;
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// Leaves a socket's file behind that nobody listens on, as a crash does.
void leave_stale_socket(const std::string& path) {
    const posix::descriptor socket{::socket(AF_UNIX, SOCK_STREAM, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

TEST(listener, port_zero_takes_one_free_port_for_all_addresses_of_a_name) {
    const listener made{config::tcp_address{.host = "localhost", .port = 0}};
    ASSERT_FALSE(made.sockets().empty());
    std::string port;
    for (const auto& socket : made.sockets()) {
        const std::string mine = socket.address.substr(socket.address.rfind(':'));
        EXPECT_NE(mine, ":0");
        EXPECT_TRUE(port.empty() || port == mine);
        port = mine;
    }
}

TEST(listener, a_second_one_on_the_address_is_refused_and_named) {
    const listener first{config::tcp_address{.host = "127.0.0.1", .port = 0}};
    const std::string address = first.sockets().front().address;
    EXPECT_EQ(refusal(config::tcp_address{.host = "127.0.0.1", .port = port_of(first)}),
              "cannot listen on " + address + ": Address already in use");
}

TEST(listener, a_name_that_does_not_resolve_is_named) {
    const auto why = refusal(config::tcp_address{.host = "no-such-host.invalid", .port = 1});
    ASSERT_TRUE(why);
    EXPECT_TRUE(why->starts_with("cannot listen on no-such-host.invalid:1: ")) << *why;
}

TEST(listener, replaces_a_stale_unix_socket_and_removes_its_own) {
    const scratch_folder folder;
    const std::string path = folder.path("lock.sock");
    leave_stale_socket(path);
    {
        const listener made{config::unix_address{.path = path}};
        EXPECT_EQ(made.sockets().front().address, "unix:" + path);
        EXPECT_EQ(refusal(config::unix_address{.path = path}),
                  "cannot listen on unix:" + path + ": another server is using it");
        EXPECT_TRUE(std::filesystem::is_socket(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(listener, leaves_alone_what_is_not_a_stale_socket) {
    const scratch_folder folder;
    const std::string path = folder.path("precious");
    std::ofstream{path} << "data";
    EXPECT_EQ(refusal(config::unix_address{.path = path}),
              "cannot listen on unix:" + path + ": the path exists and is not a socket");
    EXPECT_EQ(std::filesystem::file_size(path), 4U);
    EXPECT_EQ(refusal(config::unix_address{.path = folder.path("none/sock")}),
              "cannot listen on unix:" + folder.path("none/sock") + ": lock file " +
                  folder.path("none/sock") + ".lock: No such file or directory");
}

// --- what stands in the way, before anything is opened

std::optional<bool> may_pass(const config::address& where) {
    const auto found = find_obstacle(resolve(where));
    return found ? std::optional{found->may_pass} : std::nullopt;
}

// An empty host: [::] where there is IPv6.
TEST(listener, an_address_can_be_looked_at_before_it_is_opened_and_stays_free) {
    std::uint16_t port = 0;
    for (const char* const host : {"127.0.0.1", ""}) {
        {
            const listener first{config::tcp_address{.host = host, .port = port}};
            port = port_of(first);
            EXPECT_EQ(may_pass(config::tcp_address{.host = host, .port = port}), true);
        }
        EXPECT_EQ(may_pass(config::tcp_address{.host = host, .port = port}), std::nullopt);
        EXPECT_EQ(refusal(config::tcp_address{.host = host, .port = port}), std::nullopt);
    }
}

TEST(listener, who_looks_at_an_address_does_not_keep_another_from_it) {
    constexpr const char* host = "127.83.7.1";  // nobody else's, nor are its ports
    std::optional<listener> other{std::in_place, config::tcp_address{.host = host, .port = 0}};
    const config::tcp_address where{.host = host, .port = port_of(*other)};
    std::atomic<int> looks = 0;
    const std::jthread looking{[&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            EXPECT_NE(may_pass(where), false);
            ++looks;
        }
    }};
    while (looks < 2000) {
        other.reset();
        other.emplace(where);  // it throws if it cannot
    }
}

TEST(listener, what_will_not_pass_is_named) {
    const auto elsewhere =
        find_obstacle(resolve(config::tcp_address{.host = "192.0.2.1", .port = 7070}));
    ASSERT_TRUE(elsewhere);
    EXPECT_FALSE(elsewhere->may_pass);
    EXPECT_EQ(elsewhere->what, "cannot listen on 192.0.2.1:7070: Cannot assign requested address");

    const scratch_folder folder;
    const std::string path = folder.path("socket");
    EXPECT_EQ(may_pass(config::unix_address{.path = path}), std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
    leave_stale_socket(path);
    EXPECT_EQ(may_pass(config::unix_address{.path = path}), std::nullopt);
    const auto nowhere =
        find_obstacle(resolve(config::unix_address{.path = folder.path("none/sock")}));
    ASSERT_TRUE(nowhere);
    EXPECT_FALSE(nowhere->may_pass);
    EXPECT_EQ(nowhere->what, "cannot listen on unix:" + folder.path("none/sock") + ": " +
                                 folder.path("none") + ": No such file or directory");
    std::ofstream{folder.path("precious")} << "data";
    EXPECT_EQ(may_pass(config::unix_address{.path = folder.path("precious")}), false);
}

std::vector<posix::descriptor> handed_over(std::initializer_list<const listener*> from) {
    std::vector<posix::descriptor> made;
    for (const listener* each : from) {
        made.push_back(duplicate(each->sockets().front()));
    }
    return made;
}

int no_delay(const listening_socket& socket) {
    int value = 0;
    socklen_t size = sizeof value;
    ::getsockopt(socket.descriptor.get(), IPPROTO_TCP, TCP_NODELAY, &value, &size);
    return value;
}

TEST(listener, takes_over_sockets_that_listen_already) {
    const scratch_folder folder;
    const std::string path = folder.path("socket");
    const listener file{config::unix_address{.path = path}};
    const listener port{config::tcp_address{.host = "127.0.0.1", .port = 0}};
    {
        const listener made{handed_over({&file, &port})};
        ASSERT_EQ(made.sockets().size(), 2U);
        EXPECT_EQ(made.sockets()[0].address, "unix:" + path);
        EXPECT_EQ(made.sockets()[1].address, port.sockets().front().address);
        EXPECT_EQ(no_delay(made.sockets()[1]), 1);
    }
    EXPECT_TRUE(std::filesystem::exists(path)) << "it is not ours to remove";
}

TEST(listener, an_inherited_socket_in_the_abstract_namespace_has_a_name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = std::string{'\0'} + "monolock-" + std::to_string(::getpid());
    name.copy(address.sun_path, name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    std::vector<posix::descriptor> inherited;
    const int socket = inherited.emplace_back(::socket(AF_UNIX, SOCK_STREAM, 0)).get();
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(socket, 1), 0);
    const listener made{std::move(inherited)};
    EXPECT_EQ(made.sockets().front().address, "unix:@" + name.substr(1));
}

TEST(listener, can_be_handed_on_and_its_file_lives_as_long_as_the_last) {
    const scratch_folder folder;
    const std::string path = folder.path("socket");
    {
        std::optional<listener> first{std::in_place, config::unix_address{.path = path}};
        const listener second{std::move(*first)};
        first.reset();
        EXPECT_TRUE(std::filesystem::exists(path));
        EXPECT_EQ(second.sockets().size(), 1U);
        EXPECT_EQ(refusal(config::unix_address{.path = path}),
                  "cannot listen on unix:" + path + ": another server is using it");
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace monolock::server
