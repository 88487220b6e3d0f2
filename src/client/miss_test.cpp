#include "client/miss.hpp"

#include <gtest/gtest.h>

namespace monolock::detail {
namespace {

failure because(errc code, std::string detail = {}) {
    return {.code = make_error_code(code),
            .at = stage::connecting,
            .detail = std::move(detail),
            .admitted = false};
}

failure by_system(std::errc code) {
    failure made = because(errc::connection_closed);
    made.code = {static_cast<int>(code), std::system_category()};
    return made;
}

std::string refused() {
    return by_system(std::errc::connection_refused).code.message();
}

TEST(miss, a_claim_moves_on_while_no_server_can_count_it) {
    EXPECT_TRUE(may_move_on(by_system(std::errc::connection_refused)));
    for (const errc code : {errc::host_not_found, errc::resolve_failed, errc::connect_timeout,
                            errc::dialer_failed, errc::server_not_trusted, errc::tls_failed,
                            errc::connection_closed, errc::server_shutting_down}) {
        EXPECT_TRUE(may_move_on(because(code))) << make_error_code(code).message();
    }
    EXPECT_TRUE(may_move_on(because(static_cast<errc>(0x10F)))) << "unknown codes follow the range";
}

TEST(miss, a_claim_stays_with_a_server_that_may_count_it_or_has_judged_it) {
    for (const errc code :
         {errc::acquire_timeout, errc::certificate_refused, errc::protocol_violation,
          errc::thread_unavailable, errc::not_authorized, errc::unsupported_version}) {
        EXPECT_FALSE(may_move_on(because(code))) << make_error_code(code).message();
    }
    for (const errc code : {errc::connection_closed, errc::server_shutting_down,
                            errc::heartbeat_timeout, errc::closed_by_administrator}) {
        failure lost = because(code);
        lost.admitted = true;
        EXPECT_FALSE(may_move_on(lost)) << make_error_code(code).message();
    }
}

TEST(miss, one_alone_is_left_as_it_is) {
    const failure sum = sum_up({{.address = "a:1", .why = because(errc::connect_timeout, "a:1")}});
    EXPECT_EQ(sum.code, errc::connect_timeout);
    EXPECT_EQ(sum.detail, "a:1");
}

TEST(miss, a_sum_names_all_addresses_and_has_the_code_of_the_first) {
    const failure sum =
        sum_up({{.address = "a:1", .why = by_system(std::errc::connection_refused)},
                {.address = "b:1", .why = because(errc::connect_timeout)},
                {.address = "c:1", .why = because(errc::connect_timeout, "in the TLS handshake")}});
    EXPECT_EQ(sum.code, std::errc::connection_refused);
    EXPECT_EQ(sum.detail,
              "b:1: connecting took too long; "
              "c:1: connecting took too long, in the TLS handshake; a:1");
}

TEST(miss, what_a_retry_does_not_cure_is_not_hidden_by_a_standby) {
    const failure sum =
        sum_up({{.address = "a:1", .why = by_system(std::errc::connection_refused)},
                {.address = "b:1", .why = because(errc::server_not_trusted, "expired")}});
    EXPECT_EQ(sum.code, errc::server_not_trusted);
    EXPECT_EQ(sum.detail, "a:1: " + refused() + "; b:1: expired");
    EXPECT_TRUE(is_permanent(sum));
}

TEST(miss, the_word_of_a_server_that_goes_is_the_sum_only_if_all_said_it) {
    const auto going = because(errc::server_shutting_down, "going");
    const failure mixed = sum_up({{.address = "a:1", .why = going},
                                  {.address = "b:1", .why = because(errc::connection_closed)}});
    EXPECT_EQ(mixed.code, errc::connection_closed);
    EXPECT_EQ(mixed.detail, "a:1: " + going.code.message() + ", going; b:1");
    const failure sum =
        sum_up({{.address = "a:1", .why = going}, {.address = "b:1", .why = going}});
    EXPECT_EQ(sum.code, errc::server_shutting_down);
    EXPECT_EQ(sum.detail, "going") << "the reason, as sent";
}

}  // namespace
}  // namespace monolock::detail
