#include "server/foreign_protocol.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace monolock::server {
namespace {

std::optional<foreign_protocol> guess(std::string_view bytes) {
    return guess_foreign_to_plain(std::as_bytes(std::span{bytes}));
}

TEST(foreign_protocol, knows_what_people_send_by_mistake) {
    EXPECT_EQ(guess("GET / HTTP/1.1\r\n"), foreign_protocol::http);
    EXPECT_EQ(guess("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), foreign_protocol::http);
    EXPECT_EQ(guess("\x16\x03\x01\x02"), foreign_protocol::tls);
    EXPECT_EQ(guess("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"), foreign_protocol::proxy_header);
    EXPECT_EQ(guess("\r\n\r\n\0\r\nQUIT\n"), foreign_protocol::proxy_header);
}

TEST(foreign_protocol, does_not_guess_about_the_rest) {
    EXPECT_EQ(guess(""), std::nullopt);
    EXPECT_EQ(guess("GE"), std::nullopt);
    EXPECT_EQ(guess("\x16"), std::nullopt);
    EXPECT_EQ(guess("get / "), std::nullopt);
    EXPECT_EQ(guess("\x7f"), std::nullopt);
}

TEST(foreign_protocol, is_another_thing_to_a_port_that_speaks_tls) {
    const auto to_tls = [](std::string_view bytes) {
        return guess_foreign_to_tls(std::as_bytes(std::span{bytes}));
    };
    EXPECT_EQ(to_tls("\x01\x01"), foreign_protocol::plain_claim);
    EXPECT_EQ(guess("\x01\x01"), std::nullopt);
    EXPECT_EQ(to_tls("GET / HTTP/1.1\r\n"), foreign_protocol::http);
    EXPECT_EQ(to_tls("\x16\x03\x01\x02"), std::nullopt);
    EXPECT_EQ(to_tls(""), std::nullopt);
}

}  // namespace
}  // namespace monolock::server
