#include "server/peer_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "posix/descriptor.hpp"

namespace monolock::server {
namespace {

sockaddr_storage ipv4(const char* host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
    sockaddr_storage storage{};
    std::memcpy(&storage, &address, sizeof address);
    return storage;
}

sockaddr_storage ipv6(const char* host, std::uint16_t port) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    EXPECT_EQ(::inet_pton(AF_INET6, host, &address.sin6_addr), 1);
    sockaddr_storage storage{};
    std::memcpy(&storage, &address, sizeof address);
    return storage;
}

TEST(peer_address, prints_ipv4_and_ipv6) {
    EXPECT_EQ(peer_address::of(-1, ipv4("192.0.2.1", 5000)).to_string(), "192.0.2.1:5000");
    EXPECT_EQ(peer_address::of(-1, ipv4("255.255.255.255", 65535)).to_string(),
              "255.255.255.255:65535");
    EXPECT_EQ(peer_address::of(-1, ipv6("2001:db8::1", 1)).to_string(), "[2001:db8::1]:1");
}

TEST(peer_address, prints_an_ipv4_mapped_address_as_ipv4) {
    EXPECT_EQ(peer_address::of(-1, ipv6("::ffff:192.0.2.9", 80)).to_string(), "192.0.2.9:80");
    EXPECT_EQ(peer_address::of(-1, ipv6("::fffe:192.0.2.9", 80)).to_string(),
              "[::fffe:c000:209]:80");
}

TEST(peer_address, names_process_and_user_of_a_local_peer) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    const posix::descriptor one{ends[0]};
    const posix::descriptor other{ends[1]};
    sockaddr_storage from{};
    from.ss_family = AF_UNIX;
    EXPECT_EQ(peer_address::of(one.get(), from).to_string(),
              "unix:pid=" + std::to_string(::getpid()) + ",uid=" + std::to_string(::getuid()));
}

TEST(peer_address, says_when_it_does_not_know) {
    EXPECT_EQ(peer_address{}.to_string(), "unknown");
    EXPECT_EQ(peer_address::of(-1, sockaddr_storage{}).to_string(), "unknown");
}

TEST(peer_address, parses_what_it_prints_and_nothing_else) {
    for (const char* const text :
         {"192.0.2.1:5000", "[2001:db8::1]:1", "[::]:65535", "0.0.0.0:0", "unix:pid=7,uid=1000"}) {
        const auto parsed = peer_address::parse(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(parsed->to_string(), text);
        EXPECT_EQ(parsed, peer_address::parse(text));
    }
    EXPECT_EQ(peer_address::parse("192.0.2.1:5000"),
              peer_address::of(-1, ipv6("::ffff:192.0.2.1", 5000)));
    EXPECT_NE(peer_address::parse("192.0.2.1:5000"), peer_address::parse("192.0.2.1:5001"));
    for (const char* const text :
         {"", "unknown", ":", "192.0.2.1", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:080",
          "192.0.2.1:-1", "2001:db8::1:1", "[192.0.2.1]:1", "[2001:DB8::1]:1",
          "[::ffff:192.0.2.1]:1", "localhost:1", "unix:pid=7", "unix:pid=,uid=1",
          "unix:pid=7,uid=1 ", "unix:pid=07,uid=1"}) {
        EXPECT_EQ(peer_address::parse(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace monolock::server
