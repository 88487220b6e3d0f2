#include "client/address_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monolock::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using manner = address_round::manner;
using step = address_round::step;

claim_time at(std::chrono::nanoseconds since) {
    return claim_time{since};
}

TEST(address_order, begins_as_written) {
    EXPECT_THAT(address_order{1}.in_order(), ElementsAre(0));
    EXPECT_THAT(address_order{3}.in_order(), ElementsAre(0, 1, 2));
}

TEST(address_order, what_worked_is_first_and_the_others_keep_their_order) {
    address_order subject{4};
    subject.worked(2);
    EXPECT_THAT(subject.in_order(), ElementsAre(2, 0, 1, 3));
    subject.worked(2);
    EXPECT_THAT(subject.in_order(), ElementsAre(2, 0, 1, 3));
    subject.worked(3);
    EXPECT_THAT(subject.in_order(), ElementsAre(3, 2, 0, 1));
}

TEST(address_order, what_failed_is_last_and_the_others_keep_their_order) {
    address_order subject{4};
    subject.failed(1);
    EXPECT_THAT(subject.in_order(), ElementsAre(0, 2, 3, 1));
    subject.failed(1);
    EXPECT_THAT(subject.in_order(), ElementsAre(0, 2, 3, 1));
    subject.failed(0);
    EXPECT_THAT(subject.in_order(), ElementsAre(2, 3, 1, 0));
}

// Two claims of one client lose the same server: the second report changes nothing.
TEST(address_order, a_failover_seen_by_several_claims) {
    address_order subject{2};
    subject.failed(0);
    subject.failed(0);
    subject.worked(1);
    EXPECT_THAT(subject.in_order(), ElementsAre(1, 0));
}

TEST(address_round, one_address_has_all_the_time_and_one_try) {
    for (const manner how : {manner::quick, manner::thorough}) {
        address_round subject{{0}, 5s, how, at(0s)};
        EXPECT_FALSE(subject.is_list());
        EXPECT_EQ(subject.next(at(0s)), (step{.address = 0, .share = 5s, .silence = 5s}));
        subject.was_silent();
        EXPECT_EQ(subject.next(at(1s)), std::nullopt);
        EXPECT_EQ(subject.next(at(1s)), std::nullopt);
    }
}

TEST(address_round, goes_through_the_list_in_the_order_given) {
    address_round subject{{2, 0, 1}, 6s, manner::quick, at(0s)};
    EXPECT_TRUE(subject.is_list());
    EXPECT_EQ(subject.next(at(0s)), (step{.address = 2, .share = 2s, .silence = 600ms}));
    EXPECT_EQ(subject.next(at(0s)), (step{.address = 0, .share = 3s, .silence = 600ms}))
        << "what a refusal does not use goes to the rest";
    EXPECT_EQ(subject.next(at(2s)), (step{.address = 1, .share = 4s, .silence = 600ms}));
    EXPECT_EQ(subject.next(at(2s)), std::nullopt);
}

TEST(address_round, silence_costs_a_tenth_but_not_less_than_250_ms_nor_more_than_the_share) {
    const auto silence_of = [](std::chrono::nanoseconds whole) {
        return address_round{{0, 1}, whole, manner::quick, at(0s)}.next(at(0s))->silence;
    };
    EXPECT_EQ(silence_of(60s), 6s);
    EXPECT_EQ(silence_of(5s), 500ms);
    EXPECT_EQ(silence_of(1s), 250ms);
    EXPECT_EQ(silence_of(180ms), 90ms);
}

TEST(address_round, an_address_that_takes_longer_than_its_share_takes_only_its_share) {
    address_round subject{{0, 1}, 4s, manner::quick, at(10s)};
    EXPECT_EQ(subject.next(at(10s))->share, 2s);
    EXPECT_EQ(subject.next(at(17s))->share, 2s);
}

TEST(address_round, nothing_is_used_up_before_the_first_address) {
    address_round subject{{0, 1}, 4s, manner::quick, at(0s)};
    EXPECT_EQ(subject.next(at(1s))->share, 2s);
}

TEST(address_round, a_clock_that_seems_to_go_back_gives_nobody_more) {
    address_round subject{{0, 1}, 4s, manner::quick, at(10s)};
    EXPECT_EQ(subject.next(at(9s))->share, 2s);
    EXPECT_EQ(subject.next(at(8s))->share, 4s);
}

TEST(address_round, a_thorough_one_tries_the_silent_again_with_all_that_is_left) {
    address_round subject{{0, 1, 2}, 5s, manner::thorough, at(0s)};
    EXPECT_EQ(subject.next(at(0s))->address, 0U);
    subject.was_silent();
    EXPECT_EQ(subject.next(at(500ms))->address, 1U);
    EXPECT_EQ(subject.next(at(500ms))->address, 2U);
    subject.was_silent();
    EXPECT_EQ(subject.next(at(1s)), (step{.address = 0, .share = 2s, .silence = 2s}));
    subject.was_silent();
    EXPECT_EQ(subject.next(at(3s)), (step{.address = 2, .share = 2s, .silence = 2s}));
    subject.was_silent();
    EXPECT_EQ(subject.next(at(5s)), std::nullopt) << "once";
    EXPECT_EQ(subject.next(at(5s)), std::nullopt);
}

TEST(address_round, no_second_pass_without_silence_or_time_or_when_quick) {
    address_round refused{{0, 1}, 5s, manner::thorough, at(0s)};
    EXPECT_EQ(refused.next(at(0s))->address, 0U);
    EXPECT_EQ(refused.next(at(0s))->address, 1U);
    EXPECT_EQ(refused.next(at(0s)), std::nullopt);

    address_round late{{0, 1}, 400ms, manner::thorough, at(0s)};
    EXPECT_EQ(late.next(at(0s))->address, 0U);
    late.was_silent();
    EXPECT_EQ(late.next(at(200ms))->address, 1U);
    late.was_silent();
    EXPECT_EQ(late.next(at(400ms)), std::nullopt);

    address_round just_in_time{{0, 1}, 400ms, manner::thorough, at(0s)};
    EXPECT_EQ(just_in_time.next(at(0s))->address, 0U);
    EXPECT_EQ(just_in_time.next(at(200ms))->address, 1U);
    just_in_time.was_silent();
    EXPECT_EQ(just_in_time.next(at(400ms - 1ns)),
              (step{.address = 1, .share = 1ns, .silence = 1ns}));

    address_round quick{{0, 1}, 5s, manner::quick, at(0s)};
    EXPECT_EQ(quick.next(at(0s))->address, 0U);
    quick.was_silent();
    EXPECT_EQ(quick.next(at(500ms))->address, 1U);
    quick.was_silent();
    EXPECT_EQ(quick.next(at(1s)), std::nullopt);
}

}  // namespace
}  // namespace monolock::detail
