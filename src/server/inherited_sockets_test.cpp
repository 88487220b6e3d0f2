#include "server/inherited_sockets.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/listener.hpp"

namespace monolock::server {
namespace {

posix::descriptor listening() {
    return duplicate(
        listener{config::tcp_address{.host = "127.0.0.1", .port = 0}}.sockets().front());
}

std::vector<named_descriptor> one(std::string name, posix::descriptor descriptor) {
    std::vector<named_descriptor> made;
    made.push_back({.name = std::move(name), .descriptor = std::move(descriptor)});
    return made;
}

// On the heap: g++ 12 takes the optional addresses of one on the stack for uninitialised.
std::unique_ptr<config::server_config> defaults() {
    return std::make_unique<config::server_config>();
}

std::string refusal(std::vector<named_descriptor> taken,
                    const config::server_config& configuration = *defaults()) {
    try {
        static_cast<void>(sorted(std::move(taken), configuration));
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "accepted";
}

TEST(inherited_sockets, go_where_their_names_say) {
    std::vector<named_descriptor> taken = one("admin", listening());
    taken.push_back({.name = "listen", .descriptor = listening()});
    taken.push_back({.name = "listen", .descriptor = listening()});
    const int flags = ::fcntl(taken[1].descriptor.get(), F_GETFL);
    ASSERT_EQ(::fcntl(taken[1].descriptor.get(), F_SETFL, flags & ~O_NONBLOCK), 0);

    const auto configuration = defaults();
    configuration->ops_listen = config::unix_address{.path = "/tmp/ops"};
    const inherited_sockets made = sorted(std::move(taken), *configuration);
    EXPECT_EQ(made.listen.size(), 2U);
    EXPECT_EQ(made.ops.size(), 0U);
    EXPECT_EQ(made.admin.size(), 1U);
    EXPECT_NE(::fcntl(made.listen.front().get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(inherited_sockets, a_name_that_means_nothing_is_refused) {
    EXPECT_EQ(refusal(one("mono\nlock.socket", listening())),
              R"(the service manager's socket "mono\nlock.socket": )"
              "FileDescriptorName= must be listen, ops or admin");
}

TEST(inherited_sockets, what_nobody_can_connect_to_is_refused) {
    const std::string why =
        R"(the service manager's socket "ops": not a listening stream socket over IP or Unix)";
    EXPECT_EQ(refusal(one("ops", posix::descriptor{::socket(AF_INET, SOCK_DGRAM, 0)})), why);
    EXPECT_EQ(refusal(one("ops", posix::descriptor{::socket(AF_INET, SOCK_STREAM, 0)})), why);
    EXPECT_EQ(refusal(one("ops", posix::descriptor{::open("/dev/null", O_RDONLY)})), why);
    posix::descriptor packets{::socket(AF_UNIX, SOCK_SEQPACKET, 0)};
    const sockaddr any{.sa_family = AF_UNIX, .sa_data = {}};
    ASSERT_EQ(::bind(packets.get(), &any, sizeof any.sa_family), 0);
    ASSERT_EQ(::listen(packets.get(), 1), 0);
    EXPECT_EQ(refusal(one("ops", std::move(packets))), why);
}

TEST(inherited_sockets, a_flag_for_the_same_thing_is_a_contradiction) {
    const auto configuration = defaults();
    configuration->admin_listen = config::tcp_address{.host = "localhost", .port = 9091};
    EXPECT_EQ(refusal(one("listen", listening()), *configuration), "accepted");
    EXPECT_EQ(refusal(one("admin", listening()), *configuration),
              R"(the service manager's socket "admin": -admin-listen localhost:9091 )"
              "is configured as well, and only one of them can be");
}

// Variables of a service manager that passed one socket more than it named; gone with the test.
class variables {
public:
    explicit variables(const std::string& pid) {
        ::setenv("LISTEN_PID", pid.c_str(), 1);
        ::setenv("LISTEN_FDS", "2", 1);
        ::setenv("LISTEN_FDNAMES", "listen", 1);
    }
    variables(const variables&) = delete;
    variables& operator=(const variables&) = delete;
    ~variables() {
        for (const char* const each : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
            ::unsetenv(each);
        }
    }
};

TEST(inherited_sockets, none_without_a_service_manager_or_for_another_process) {
    EXPECT_TRUE(take_inherited_sockets({}).listen.empty());
    const variables set{"1"};
    EXPECT_TRUE(take_inherited_sockets({}).listen.empty());
}

TEST(inherited_sockets, each_has_a_name) {
    const variables set{std::to_string(::getpid())};
    EXPECT_THROW(static_cast<void>(take_inherited_sockets({})), std::runtime_error);
}

}  // namespace
}  // namespace monolock::server
