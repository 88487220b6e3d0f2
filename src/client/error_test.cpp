#include "monolock/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <ios>
#include <vector>

namespace monolock {
namespace {

const std::vector<errc> all{errc::empty_name,
                            errc::name_too_long,
                            errc::name_not_utf8,
                            errc::lease_out_of_range,
                            errc::invalid_address,
                            errc::invalid_options,
                            errc::no_claim,
                            errc::in_callback,
                            errc::host_not_found,
                            errc::resolve_failed,
                            errc::connect_timeout,
                            errc::dialer_failed,
                            errc::thread_unavailable,
                            errc::tls_files,
                            errc::server_not_trusted,
                            errc::certificate_refused,
                            errc::tls_failed,
                            errc::acquire_timeout,
                            errc::heartbeat_timeout,
                            errc::connection_closed,
                            errc::protocol_violation,
                            errc::other_process,
                            errc::stopped,
                            errc::busy,
                            errc::wait_expired,
                            errc::server_shutting_down,
                            errc::closed_by_administrator,
                            errc::unsupported_version,
                            errc::first_message_not_acquire,
                            errc::duplicate_acquire,
                            errc::unknown_message_type,
                            errc::server_empty_name,
                            errc::server_name_too_long,
                            errc::server_name_not_utf8,
                            errc::server_lease_not_positive,
                            errc::not_authorized};

TEST(errors, there_is_one_category_and_it_keeps_its_numbers) {
    const std::vector<int> numbers{1,     2,     3,     4,     5,     6,     7,     8,     16,
                                   17,    18,    19,    20,    21,    22,    23,    24,    32,
                                   33,    34,    35,    36,    48,    49,    50,    0x101, 0x102,
                                   0x110, 0x111, 0x112, 0x113, 0x114, 0x115, 0x116, 0x117, 0x118};
    ASSERT_EQ(all.size(), numbers.size());
    for (std::size_t at = 0; at < all.size(); ++at) {
        const std::error_code code = all[at];
        EXPECT_EQ(code.value(), numbers[at]);
        EXPECT_EQ(&code.category(), &error_category());
        EXPECT_NE(code.message(), "unknown monolock error") << numbers[at];
    }
    EXPECT_STREQ(error_category().name(), "monolock");
}

std::vector<int> numbers_that_meet(condition what) {
    std::vector<int> found;
    for (const errc member : all) {
        if (make_error_code(member) == what) {
            found.push_back(static_cast<int>(member));
        }
    }
    return found;
}

TEST(errors, conditions_say_what_the_caller_can_do) {
    using numbers = std::vector<int>;
    EXPECT_EQ(numbers_that_meet(condition::retryable),
              (numbers{16, 17, 18, 19, 32, 33, 34, 0x101, 0x102}));
    EXPECT_EQ(numbers_that_meet(condition::claim_lost),
              (numbers{32, 33, 34, 35, 36, 0x101, 0x102, 0x110, 0x111, 0x112, 0x113, 0x114, 0x115,
                       0x116, 0x117, 0x118}));
    EXPECT_EQ(numbers_that_meet(condition::denied), (numbers{23, 0x118}));
    EXPECT_EQ(
        numbers_that_meet(condition::misuse),
        (numbers{1, 2, 3, 4, 5, 6, 7, 8, 0x110, 0x111, 0x112, 0x113, 0x114, 0x115, 0x116, 0x117}));
    EXPECT_EQ(numbers_that_meet(condition::in_doubt), (numbers{32, 33}));
}

TEST(errors, connect_errors_of_the_system_are_retryable_and_success_is_not) {
    EXPECT_EQ(std::error_code(ECONNREFUSED, std::system_category()), condition::retryable);
    EXPECT_NE(std::error_code(), condition::retryable);
    EXPECT_NE(std::error_code(1, std::iostream_category()), condition::retryable);
}

TEST(errors, unknown_server_codes_follow_their_range) {
    const auto of_server = [](int code) {
        return make_error_code(static_cast<errc>(0x100 + code));
    };
    EXPECT_EQ(wire_code(of_server(0)), 0);
    EXPECT_EQ(wire_code(of_server(0xff)), 0xff);
    EXPECT_EQ(of_server(0x00), condition::retryable);
    EXPECT_EQ(of_server(0x0f), condition::retryable);
    EXPECT_EQ(of_server(0x7f), condition::misuse);
    EXPECT_NE(of_server(0xff), condition::retryable);
    EXPECT_EQ(of_server(0x0f).message(), "the server says 0x0f: unknown error");
    EXPECT_EQ(wire_code(make_error_code(errc::busy)), std::nullopt);
    EXPECT_EQ(wire_code(std::error_code(0x101, std::system_category())), std::nullopt);
}

TEST(errors, exceptions_keep_their_cause_through_copies) {
    try {
        throw server_error{make_error_code(errc::not_authorized), stage::requesting, "not yours"};
    } catch (const error& failed) {
        const server_error copy{dynamic_cast<const server_error&>(failed)};
        EXPECT_EQ(copy.code(), condition::denied);
        EXPECT_EQ(copy.at(), stage::requesting);
        EXPECT_EQ(copy.wire_code(), 0x18);
        EXPECT_STREQ(copy.reason(), "not yours");
        EXPECT_STREQ(copy.detail(), "not yours");
        EXPECT_FALSE(copy.temporary());
        EXPECT_STREQ(copy.what(), "not yours: the server says 0x18: not authorized for lock");
    }
}

}  // namespace
}  // namespace monolock
