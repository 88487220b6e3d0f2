#include "server/listener.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

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
    const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
    EXPECT_EQ(refusal(config::tcp_address{.host = "127.0.0.1", .port = port}),
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

}  // namespace
}  // namespace monolock::server
