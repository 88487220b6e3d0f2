#include "history/check.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "history/tale.hpp"

namespace monolock::history {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr claim_id first{1, 1};
constexpr claim_id second{2, 1};
constexpr claim_id third{3, 1};

constexpr settings strict{.handover_max = std::chrono::milliseconds{50},
                          .silence_slack = std::chrono::milliseconds{50},
                          .served_within = std::chrono::milliseconds{5000}};

std::vector<invariant> broken(const report& of) {
    std::vector<invariant> names;
    for (const violation& one : of.violations()) {
        names.push_back(one.broken);
    }
    return names;
}

// All that is broken may be a busy machine's fault.
bool only_late(const report& of) {
    return of.count(severity::late) != 0 && of.count(severity::unsafe) == 0;
}

// The first owns until it releases at `release`, and the second is granted at `granted`.
tale handed_over(int release, int granted) {
    return tale{}
        .ask(first, 0)
        .grant(first, 10, 100, 800)
        .ask(second, 20)
        .waiting(second, 30)
        .confirmed(first, 500, 1200)
        .end(first, release)
        .grant(second, granted, 101, granted + 800)
        .end(second, 1500);
}

// The first falls silent at 500 and the second is granted at `granted`: its lease is over at 1500,
// its deadline was at 1200.
tale fallen_silent(int granted) {
    return tale{}
        .worker(kind::near, 1, 0)
        .worker(kind::near, 2, 0)
        .ask(first, 0)
        .grant(first, 10, 100, 800)
        .ask(second, 20)
        .waiting(second, 30)
        .confirmed(first, 410, 1200)
        .worker(kind::silent, 1, 500)
        .grant(second, granted, 101, granted + 800)
        .end(second, 2000)
        .worker(kind::heard, 1, 2100)
        .loss(first, 2101);
}

// ---- exclusion

TEST(Exclusion, HoldsIfTheSecondIsGrantedWhenTheFirstReleased) {
    const report made = handed_over(900, 900).check();
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::exclusion).checked, 1U);
}

TEST(Exclusion, TheFirstOwnerOfALockIsNoPair) {
    const report made = tale{}
                            .ask(first, 0, 1000, 0)
                            .grant(first, 10, 100, 800)
                            .ask(second, 20, 1000, 1)
                            .grant(second, 30, 101, 800)
                            .check();
    EXPECT_EQ(made.of(invariant::exclusion).checked, 0U);
    EXPECT_EQ(made.of(invariant::exclusion).passed_over, 0U);
}

TEST(Exclusion, IsBrokenByTwoThatBelieve) {
    const report made = handed_over(900, 899).check();
    ASSERT_THAT(broken(made), ElementsAre(invariant::exclusion, invariant::no_early_grant));
    EXPECT_EQ(made.violations()[0].first.claim, first);
    EXPECT_EQ(made.violations()[0].second.claim, second);
    EXPECT_EQ(made.violations()[0].second.at, tale::ms(899));
    EXPECT_EQ(made.violations()[0].how, "the first believed for another 1.000 ms");
}

TEST(Exclusion, APausedOwnerBelievesUntilItsDeadline) {
    const auto told = [](int granted) {
        return tale{}
            .ask(first, 0)
            .grant(first, 10, 100, 800)
            .worker(kind::paused, 1, 100)
            .worker(kind::silent, 1, 100)
            .ask(second, 200)
            .waiting(second, 201)
            .grant(second, granted, 101, granted + 800)
            .worker(kind::heard, 1, 3000)
            .worker(kind::resumed, 1, 3000)
            .loss(first, 3001)
            .end(second, 3500)
            .check();
    };
    EXPECT_THAT(broken(told(1000)), IsEmpty());
    EXPECT_THAT(broken(told(799)), ElementsAre(invariant::exclusion, invariant::no_early_grant));
}

TEST(Exclusion, IsNotBrokenIfAResetMayHaveEndedTheFirst) {
    const auto told = [](int reset) {
        return handed_over(900, 899)
            .worker(kind::resetting, 1, reset)
            .worker(kind::reset_over, 1, reset + 1)
            .check();
    };
    EXPECT_THAT(broken(told(500)), IsEmpty());
    EXPECT_EQ(told(500).of(invariant::exclusion).passed_over, 1U);
    EXPECT_EQ(told(500).of(invariant::exclusion).checked, 0U);
    EXPECT_THAT(broken(told(901)), ElementsAre(invariant::exclusion, invariant::no_early_grant));
}

TEST(Exclusion, IsNotBrokenOverARestart) {
    EXPECT_THAT(broken(handed_over(900, 899)
                           .run(kind::server_down, 600)
                           .run(kind::server_started, 700)
                           .check()),
                IsEmpty());
}

TEST(Exclusion, IsNotBrokenOverARestartWithAnotherClock) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0)
                           .grant(first, 10, 100, 800)
                           .run(kind::server_down, 20)
                           .clock_was_set_before_start(30)
                           .ask(second, 40)
                           .grant(second, 50, 90, 840)
                           .loss(first, 60, reason::closed)
                           .end(second, 100)
                           .check()),
                IsEmpty());
}

TEST(Exclusion, IsNotBrokenIfAnOperatorEndedTheFirst) {
    const auto told = [](int forcing, int over) {
        return handed_over(900, 899)
            .run(kind::forcing, forcing)
            .run(kind::forced_over, over)
            .check();
    };
    EXPECT_THAT(broken(told(5, 10)), IsEmpty());
    EXPECT_THAT(broken(told(899, 950)), IsEmpty());
    EXPECT_THAT(broken(told(5, 9)), IsEmpty());  // the first had not seen its grant yet
    EXPECT_THAT(broken(told(900, 950)),
                ElementsAre(invariant::exclusion, invariant::no_early_grant));
}

// The first is told of its grant only after it was forced out and the second was granted.
TEST(Exclusion, WhoHearsLateOfAGrantThatIsOverIsExcused) {
    const auto told = [](int forced) {
        return tale{}
            .ask(first, 0)
            .waiting(first, 5)
            .ask(second, 6)
            .waiting(second, 7)
            .run(kind::forcing, forced)
            .run(kind::forced_over, forced + 1)
            .grant(second, 100, 101, 900)
            .grant(first, 110, 100, 910)
            .loss(first, 111, reason::administrator)
            .end(second, 200)
            .check();
    };
    EXPECT_THAT(broken(told(50)), IsEmpty());
    EXPECT_THAT(broken(told(111)), ElementsAre(invariant::exclusion, invariant::no_early_grant,
                                               invariant::tokens_per_lock));
}

// The first was stopped between its grant and the note of it, for longer than its lease.
TEST(Exclusion, WhoNotesAGrantPastItsDeadlineNeverBelieved) {
    const auto told = [](int until) {
        return tale{}
            .ask(first, 0)
            .waiting(first, 5)
            .ask(second, 6)
            .waiting(second, 7)
            .grant(second, 1100, 101, 1900)
            .grant(first, 1200, 100, until)
            .loss(first, 1201, reason::closed)
            .end(second, 1300);
    };
    const report made = told(1200).check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::exclusion).passed_over, 1U);
    EXPECT_THAT(
        broken(told(1201).check()),
        ElementsAre(invariant::exclusion, invariant::no_early_grant, invariant::tokens_per_lock));
    EXPECT_THAT(broken(told(1200).act(first, 1200).check()),
                testing::Contains(invariant::acts_within_belief));
}

TEST(Exclusion, EndsWithAKilledProcess) {
    const auto told = [](int killed) {
        return tale{}
            .ask(first, 0)
            .grant(first, 10, 100, 800)
            .worker(kind::killed, 1, killed)
            .ask(second, 20)
            .waiting(second, 30)
            .grant(second, 500, 101, 1300)
            .check();
    };
    EXPECT_THAT(broken(told(500)), IsEmpty());
    EXPECT_THAT(broken(told(501)), ElementsAre(invariant::exclusion, invariant::no_early_grant));
}

TEST(Exclusion, LocksAreApart) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0, 1000, 0)
                           .grant(first, 10, 100, 800)
                           .ask(second, 20, 1000, 1)
                           .grant(second, 30, 101, 800)
                           .check()),
                IsEmpty());
}

// ---- acts_within_belief

TEST(ActsWithinBelief, NoDeadlineIsFurtherAwayThanTheLeaseAllows) {
    const auto told = [](int until, int confirmed_until) {
        return tale{}
            .ask({1, 1}, 0)
            .grant({1, 1}, 10, 5, until)
            .confirmed({1, 1}, 300, confirmed_until)
            .end({1, 1}, 400)
            .check();
    };
    EXPECT_EQ(told(810, 1100).of(invariant::acts_within_belief).violations, 0U);
    EXPECT_EQ(told(811, 1100).of(invariant::acts_within_belief).violations, 1U);
    EXPECT_EQ(told(810, 1101).of(invariant::acts_within_belief).violations, 1U);
}

TEST(ActsWithinBelief, HoldsUpToTheDeadline) {
    const tale told =
        tale{}.ask(first, 0).grant(first, 10, 100, 800).act(first, 799).loss(first, 801);
    EXPECT_THAT(broken(told.check()), IsEmpty());
    EXPECT_EQ(told.check().of(invariant::acts_within_belief).checked, 2U)
        << "its act, and how far its belief reaches";
    EXPECT_EQ(told.check({.clocks_drift = true}).of(invariant::acts_within_belief).checked, 1U);
}

TEST(ActsWithinBelief, IsBrokenAtTheDeadline) {
    EXPECT_THAT(broken(tale{}.ask(first, 0).grant(first, 10, 100, 800).act(first, 800).check()),
                ElementsAre(invariant::acts_within_belief));
}

TEST(ActsWithinBelief, IsBrokenAfterTheRelease) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0)
                           .grant(first, 10, 100, 800)
                           .end(first, 500)
                           .act(first, 501)
                           .check()),
                ElementsAre(invariant::acts_within_belief));
}

TEST(ActsWithinBelief, WhoActsBelieves) {
    EXPECT_THAT(broken(fallen_silent(1550).act(first, 1600).check(strict)),
                ElementsAre(invariant::exclusion, invariant::acts_within_belief));
}

// ---- leases

TEST(NoEarlyGrant, HoldsFromTheEndOfTheLease) {
    const report made = fallen_silent(1400).check();  // sent at 400: 0.8 x lease before 1200
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::no_early_grant).checked, 1U);
}

TEST(NoEarlyGrant, IsBrokenBeforeTheEndOfTheLease) {
    EXPECT_THAT(broken(fallen_silent(1399).check()), ElementsAre(invariant::no_early_grant));
}

TEST(NoEarlyGrant, IsWorthNoMoreThanTheDeadlineIfClocksDrift) {
    EXPECT_THAT(broken(fallen_silent(1200).check({.clocks_drift = true})), IsEmpty());
    EXPECT_THAT(broken(fallen_silent(1199).check({.clocks_drift = true})),
                ElementsAre(invariant::exclusion, invariant::no_early_grant));
}

TEST(NoEarlyGrant, ACloseThatCannotHaveArrivedIsSilence) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0)
                           .grant(first, 10, 100, 800)
                           .worker(kind::silent, 1, 100)
                           .end(first, 200)
                           .ask(second, 20)
                           .waiting(second, 30)
                           .grant(second, 999, 101, 1799)
                           .check()),
                ElementsAre(invariant::no_early_grant));
}

TEST(NoEarlyGrant, ACloseMayArriveOnceTheClientIsHeardAgain) {
    const auto told = [](int heard) {
        return tale{}
            .ask(first, 0)
            .grant(first, 10, 100, 800)
            .worker(kind::silent, 1, 100)
            .end(first, 200)
            .ask(second, 20)
            .waiting(second, 30)
            .worker(kind::heard, 1, heard)
            .grant(second, 400, 101, 1200)
            .check();
    };
    EXPECT_THAT(broken(told(400)), IsEmpty());
    EXPECT_THAT(broken(told(401)), ElementsAre(invariant::no_early_grant));
}

TEST(SilenceBounded, HoldsToTheBound) {
    const report made = fallen_silent(1550).check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::silence_bounded).checked, 1U);
    EXPECT_EQ(made.silence_max, tale::ms(50));
}

TEST(SilenceBounded, IsBrokenBeyond) {
    const report made = fallen_silent(1551).check(strict);
    EXPECT_THAT(broken(made), ElementsAre(invariant::silence_bounded));
    EXPECT_TRUE(only_late(made));
}

// Falls silent at `silent`, when a heartbeat that was sent at 400 and noted as confirmed at 410 is
// the last that is known.
tale fallen_silent_after_a_beat(int silent, int granted, int lease = 1000) {
    return tale{}
        .worker(kind::near, 1, 0)
        .worker(kind::near, 2, 0)
        .ask(first, 0, lease)
        .grant(first, 10, 100, lease * 4 / 5)
        .ask(second, 20)
        .waiting(second, 30)
        .confirmed(first, 410, 400 + lease * 4 / 5)
        .worker(kind::silent, 1, silent)
        .grant(second, granted, 101, granted + 800)
        .end(second, granted + 500)
        .worker(kind::heard, 1, granted + 600)
        .loss(first, granted + 601);
}

TEST(SilenceBounded, CountsFromWhatWasConfirmedIfNoMoreCanHaveBeenSent) {
    // The next heartbeat was due at 500 at the earliest.
    EXPECT_THAT(broken(fallen_silent_after_a_beat(499, 1460).check(strict)), IsEmpty());
    EXPECT_THAT(broken(fallen_silent_after_a_beat(499, 1461).check(strict)),
                ElementsAre(invariant::silence_bounded));
    EXPECT_EQ(fallen_silent_after_a_beat(499, 1460).check(strict).silence_max, tale::ms(50));
    // The client may have noted it as late as that.
    EXPECT_THAT(broken(fallen_silent_after_a_beat(405, 1455).check(strict)), IsEmpty());
    EXPECT_THAT(broken(fallen_silent_after_a_beat(405, 1456).check(strict)),
                ElementsAre(invariant::silence_bounded));
    // A lease of 200 ms has 50 from one to the next.
    EXPECT_THAT(broken(fallen_silent_after_a_beat(449, 661, 200).check(strict)),
                ElementsAre(invariant::silence_bounded));
}

TEST(SilenceBounded, CountsFromTheSilenceIfMoreMayHaveBeenSent) {
    EXPECT_THAT(broken(fallen_silent_after_a_beat(500, 1550).check(strict)), IsEmpty());
    EXPECT_THAT(broken(fallen_silent_after_a_beat(500, 1551).check(strict)),
                ElementsAre(invariant::silence_bounded));
    EXPECT_THAT(broken(fallen_silent_after_a_beat(450, 700, 200).check(strict)), IsEmpty());
    EXPECT_THAT(broken(fallen_silent_after_a_beat(450, 701, 200).check(strict)),
                ElementsAre(invariant::silence_bounded));
}

TEST(SilenceBounded, WhatIsNotLateIsNeitherEarly) {
    const report made = fallen_silent_after_a_beat(640, 1450).check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::silence_bounded).checked, 1U);
    EXPECT_EQ(made.silence_max, tale::ms(0));
}

TEST(SilenceBounded, PassesOverWhatNobodyCanKnow) {
    const auto passed_over = [](const tale& told) {
        const report made = told.check(strict);
        return made.violations().empty() && made.of(invariant::silence_bounded).passed_over == 1;
    };
    EXPECT_TRUE(passed_over(
        fallen_silent(1600).run(kind::server_paused, 1400).run(kind::server_serves, 1590)));
    EXPECT_TRUE(passed_over(
        fallen_silent(1600).worker(kind::paused, 2, 1400).worker(kind::resumed, 2, 1590)));
    EXPECT_TRUE(passed_over(fallen_silent(1900).ask(third, 25).loss(third, 2700)));
}

// ---- handover

TEST(HandoverBounded, HoldsToTheBound) {
    const report made =
        handed_over(900, 950).worker(kind::near, 1, 0).worker(kind::near, 2, 0).check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::handover_bounded).checked, 1U);
    EXPECT_EQ(made.handover_max, tale::ms(50));
}

TEST(HandoverBounded, IsBrokenBeyond) {
    const report made =
        handed_over(900, 951).worker(kind::near, 1, 0).worker(kind::near, 2, 0).check(strict);
    EXPECT_THAT(broken(made), ElementsAre(invariant::handover_bounded));
    EXPECT_TRUE(only_late(made));
}

TEST(HandoverBounded, CountsFromTheCloseIfThatIsTold) {
    const tale told =
        handed_over(900, 960).worker(kind::near, 1, 0).worker(kind::near, 2, 0).closed(first, 910);
    EXPECT_THAT(broken(told.check(strict)), IsEmpty());
    EXPECT_EQ(told.check(strict).handover_max, tale::ms(50));
}

TEST(HandoverBounded, IsOfNearWorkersAndOfThoseWhoWaited) {
    EXPECT_EQ(handed_over(900, 1400)
                  .worker(kind::near, 1, 0)
                  .check(strict)
                  .of(invariant::handover_bounded)
                  .passed_over,
              1U);
    const report late_asker = tale{}
                                  .worker(kind::near, 1, 0)
                                  .worker(kind::near, 2, 0)
                                  .ask(first, 0)
                                  .grant(first, 10, 100, 800)
                                  .end(first, 100)
                                  .ask(second, 1000)
                                  .grant(second, 1001, 101, 1800)
                                  .check(strict);
    EXPECT_THAT(broken(late_asker), IsEmpty());
    EXPECT_EQ(late_asker.of(invariant::handover_bounded).checked, 0U);
}

TEST(HandoverBounded, PassesOverAnOwnerInBetweenThatNobodyTellsOf) {
    const report made = handed_over(900, 1100)
                            .worker(kind::near, 1, 0)
                            .worker(kind::near, 2, 0)
                            .ask(third, 25)
                            .loss(third, 1090)
                            .check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::handover_bounded).passed_over, 1U);
}

// The server promotes whoever it does not know to be gone, and tells it in vain.
TEST(HandoverBounded, PassesOverAnOwnerInBetweenWhoseEndTheServerDidNotHear) {
    const auto told = [](int reset, int over, const tale& gone) {
        return tale{gone}
            .worker(kind::near, 1, 0)
            .worker(kind::near, 2, 0)
            .worker(kind::resetting, 3, reset)
            .worker(kind::reset_over, 3, over)
            .check(strict);
    };
    const auto passed_over = [](const report& made) {
        return made.violations().empty() && made.of(invariant::handover_bounded).passed_over == 1;
    };
    const tale broke = handed_over(900, 1100).ask(third, 25).loss(third, 700, reason::closed);
    EXPECT_TRUE(passed_over(told(600, 650, broke)));
    EXPECT_TRUE(passed_over(told(600, 750, broke)));
    EXPECT_TRUE(only_late(told(701, 750, broke)));
    const tale left = handed_over(900, 1100).ask(third, 25).end(third, 700);
    EXPECT_TRUE(passed_over(told(600, 750, left)));
    EXPECT_TRUE(only_late(told(600, 650, left)));
    EXPECT_TRUE(only_late(told(1, 250, handed_over(900, 1100).ask(third, 25, 650).end(third, 240))))
        << "its lease was over";
    const tale before = tale{}
                            .ask(third, 0)
                            .waiting(third, 1)
                            .ask(first, 2)
                            .ask(second, 3)
                            .waiting(second, 4)
                            .loss(third, 5, reason::closed)
                            .grant(first, 10, 100, 800)
                            .end(first, 100)
                            .grant(second, 200, 101, 1000);
    EXPECT_TRUE(only_late(told(3, 9, before))) << "it had its turn before the first";
}

// ---- tokens

TEST(OneToken, IsNotZero) {
    EXPECT_THAT(broken(tale{}.ask(first, 0).grant(first, 10, 0, 800).check()),
                ElementsAre(invariant::one_token));
}

TEST(OneToken, IsOfOneClaim) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0, 1000, 0)
                           .ask(second, 0, 1000, 1)
                           .grant(first, 10, 100, 800)
                           .grant(second, 10, 100, 800)
                           .check()),
                ElementsAre(invariant::one_token));
}

TEST(OneToken, AClaimHasOne) {
    const tale told = tale{}.ask(first, 0).grant(first, 10, 100, 800).grant(first, 11, 100, 800);
    EXPECT_THAT(broken(told.check()), IsEmpty());
    EXPECT_THAT(broken(tale{told}.grant(first, 12, 101, 800).check()),
                ElementsAre(invariant::possible_story));
}

tale one_after_the_other(std::uint64_t token, std::uint64_t next_token, std::uint32_t next_lock) {
    return tale{}
        .ask(first, 0)
        .grant(first, 10, token, 800)
        .end(first, 100)
        .ask(second, 11, 1000, next_lock)
        .waiting(second, 12)
        .grant(second, 101, next_token, 900)
        .end(second, 200);
}

TEST(TokensPerLock, Rise) {
    EXPECT_THAT(broken(one_after_the_other(100, 101, 0).check()), IsEmpty());
    EXPECT_THAT(broken(one_after_the_other(101, 100, 0).check()),
                ElementsAre(invariant::tokens_per_lock, invariant::tokens_over_all));
}

TEST(TokensPerLock, PromiseNothingOverARestartWithAnotherClock) {
    const tale told = tale{}
                          .ask(first, 0)
                          .grant(first, 10, 100, 800)
                          .loss(first, 50, reason::closed)
                          .run(kind::server_down, 40)
                          .ask(second, 70)
                          .grant(second, 80, 90, 880);
    EXPECT_THAT(broken(tale{told}.clock_was_set_before_start(60).check()), IsEmpty());
    EXPECT_THAT(broken(tale{told}.run(kind::server_started, 60).check()),
                ElementsAre(invariant::tokens_per_lock, invariant::tokens_over_all));
}

TEST(OneToken, PassesOverOneThatComesAgainAfterTheClockWasSet) {
    const report made = tale{}
                            .ask(first, 0)
                            .grant(first, 10, 100, 800)
                            .loss(first, 50, reason::closed)
                            .run(kind::server_down, 40)
                            .clock_was_set_before_start(60)
                            .ask(second, 70)
                            .grant(second, 80, 100, 880)
                            .check();
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::one_token).checked, 1U);
    EXPECT_EQ(made.of(invariant::one_token).passed_over, 1U);
}

TEST(TokensOverAll, RiseOverLocks) {
    EXPECT_THAT(broken(one_after_the_other(100, 101, 1).check()), IsEmpty());
    EXPECT_THAT(broken(one_after_the_other(101, 100, 1).check()),
                ElementsAre(invariant::tokens_over_all));
}

TEST(TokensOverAll, AreNotComparedWhenGrantsMayHaveCrossed) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0, 1000, 0)
                           .ask(second, 10, 1000, 1)
                           .grant(first, 10, 101, 800)
                           .grant(second, 20, 100, 800)
                           .check()),
                IsEmpty());
}

TEST(TokensOverAll, APromotionIsNotEarlierThanTheReleaseBeforeIt) {
    const tale told = tale{}
                          .ask(first, 0, 1000, 0)
                          .grant(first, 5, 100, 800)
                          .ask(second, 6, 1000, 0)
                          .waiting(second, 7)
                          .ask(third, 8, 1000, 1)
                          .grant(third, 20, 150, 800)
                          .end(first, 30);
    EXPECT_THAT(broken(tale{told}.grant(second, 40, 151, 840).check()), IsEmpty());
    EXPECT_THAT(broken(tale{told}.grant(second, 40, 149, 840).check()),
                ElementsAre(invariant::tokens_over_all));
}

// ---- order

// The second sees WAITING at 30, the third asks at `asked`, and is granted before it.
tale overtaken(int asked) {
    return tale{}
        .ask(first, 0)
        .grant(first, 10, 100, 800)
        .ask(second, 20)
        .waiting(second, 30)
        .ask(third, asked)
        .waiting(third, 40)
        .end(first, 100)
        .grant(third, 110, 101, 900)
        .end(third, 120)
        .grant(second, 130, 102, 900);
}

TEST(FifoAsSeen, IsBrokenByOneThatAskedAfterwards) {
    const report made = overtaken(31).check();
    EXPECT_THAT(broken(made), ElementsAre(invariant::fifo_as_seen));
    EXPECT_EQ(made.violations()[0].first.claim, second);
    EXPECT_EQ(made.violations()[0].second.claim, third);
}

TEST(FifoAsSeen, SaysNothingOfTwoThatAskedAtOnce) {
    EXPECT_THAT(broken(overtaken(30).check()), IsEmpty());
}

// The second never is granted; the third is, at 110.
tale forgotten() {
    return tale{}
        .ask(first, 0)
        .grant(first, 10, 100, 800)
        .ask(second, 20)
        .waiting(second, 30)
        .ask(third, 40)
        .waiting(third, 50)
        .end(first, 100)
        .grant(third, 110, 101, 900);
}

TEST(FifoAsSeen, IsBrokenByOneThatWasForgotten) {
    EXPECT_THAT(broken(forgotten().check()), ElementsAre(invariant::fifo_as_seen));
    EXPECT_THAT(broken(forgotten().end(second, 111).check()), ElementsAre(invariant::fifo_as_seen));
    EXPECT_THAT(broken(forgotten().loss(second, 1200).check()),
                ElementsAre(invariant::fifo_as_seen));
}

TEST(FifoAsSeen, WhoHasLeftIsNotOvertaken) {
    EXPECT_THAT(broken(forgotten().end(second, 110).check()), IsEmpty());
    EXPECT_THAT(broken(forgotten().loss(second, 110).check()), IsEmpty());
    EXPECT_THAT(broken(forgotten().worker(kind::killed, 2, 105).check()), IsEmpty());
}

TEST(FifoAsSeen, PassesOverWhoMayHaveLostItsPlace) {
    const auto passed_over = [](const tale& told) {
        const report made = told.check();
        const tally& counts = made.of(invariant::fifo_as_seen);
        return made.violations().empty() && counts.passed_over == 1 && counts.checked == 0;
    };
    EXPECT_TRUE(passed_over(forgotten().worker(kind::paused, 2, 60)));
    EXPECT_TRUE(passed_over(forgotten().worker(kind::silent, 2, 60)));
    EXPECT_TRUE(passed_over(forgotten().worker(kind::resetting, 2, 60)));
    EXPECT_TRUE(passed_over(forgotten().run(kind::forcing, 60)));
    EXPECT_TRUE(passed_over(forgotten().run(kind::server_started, 60)));
    EXPECT_TRUE(passed_over(forgotten().run(kind::server_started, 25)))
        << "its WAITING was on its way";
    EXPECT_TRUE(passed_over(forgotten().loss(second, 1000)));
    EXPECT_TRUE(passed_over(forgotten().worker(kind::paused, 2, 60).end(second, 105)))
        << "had it not left, nothing would have been said either";
}

// ---- liveness

TEST(EveryoneServed, HoldsToTheBound) {
    const tale told = tale{}.run(kind::calm, 100).ask(first, 50).waiting(first, 60);
    EXPECT_THAT(
        broken(tale{told}.grant(first, 5100, 100, 5900).run(kind::finish, 6000).check(strict)),
        IsEmpty());
    const report late =
        tale{told}.grant(first, 5101, 100, 5900).run(kind::finish, 6000).check(strict);
    EXPECT_THAT(broken(late), ElementsAre(invariant::everyone_served));
    EXPECT_TRUE(only_late(late));
}

TEST(EveryoneServed, IsBrokenByOneThatWaitsForEver) {
    const report made = tale{}
                            .ask(first, 50)
                            .waiting(first, 60)
                            .run(kind::calm, 100)
                            .run(kind::finish, 5100)
                            .check(strict);
    EXPECT_THAT(broken(made), ElementsAre(invariant::everyone_served, invariant::everyone_served));
    EXPECT_EQ(made.count(severity::late), 0U) << "its claim and itself";
    EXPECT_EQ(made.of(invariant::everyone_served).violations, 2U);
}

TEST(EveryoneServed, PassesOverWhoeverAskedTooLateToBeWaitedFor) {
    const tale told = tale{}
                          .run(kind::calm, 100)
                          .ask(first, 200)
                          .grant(first, 210, 100, 900)
                          .end(first, 220)
                          .ask({1, 2}, 230)
                          .run(kind::finish, 5229);
    EXPECT_THAT(broken(told.check(strict)), IsEmpty());
    EXPECT_EQ(told.check(strict).of(invariant::everyone_served).passed_over, 1U);
}

TEST(EveryoneServed, EachWorkerHasAGrantInCalm) {
    const tale told = tale{}.ask(first, 0).grant(first, 10, 100, 800).end(first, 20);
    const report made = tale{told}.run(kind::calm, 10).run(kind::finish, 30).check(strict);
    EXPECT_THAT(broken(made), IsEmpty());
    EXPECT_EQ(made.of(invariant::everyone_served).checked, 2U) << "its claim and itself";
    EXPECT_THAT(broken(tale{told}.run(kind::calm, 11).run(kind::finish, 30).check(strict)),
                ElementsAre(invariant::everyone_served));
    EXPECT_THAT(broken(tale{told}
                           .run(kind::calm, 11)
                           .worker(kind::killed, 1, 25)
                           .run(kind::finish, 30)
                           .check(strict)),
                IsEmpty());
}

report lost_in_calm(int calm, reason why) {
    return tale{}
        .ask(first, 100)
        .grant(first, 110, 100, 910)
        .loss(first, 911, why)
        .run(kind::calm, calm)
        .run(kind::finish, 2000)
        .check();
}

TEST(NothingLostInCalm, IsOfClaimsThatWereBegunInIt) {
    EXPECT_THAT(broken(lost_in_calm(100, reason::closed)),
                ElementsAre(invariant::nothing_lost_in_calm));
    EXPECT_THAT(broken(lost_in_calm(101, reason::closed)), IsEmpty());
}

TEST(NothingLostInCalm, OnlySilenceMayBeABusyMachines) {
    for (const reason why : {reason::unreachable, reason::closed, reason::shutdown,
                             reason::administrator, reason::refused, reason::violation}) {
        EXPECT_FALSE(only_late(lost_in_calm(100, why))) << to_string(why);
        EXPECT_EQ(lost_in_calm(100, why).of(invariant::nothing_lost_in_calm).violations, 1U);
    }
    EXPECT_TRUE(only_late(lost_in_calm(100, reason::silence)));
}

TEST(ToldForCause, IsBrokenByAnOperatorWhoWasNotThere) {
    const auto told = [](kind since, kind until, reason why, int began) {
        return tale{}
            .run(since, began)
            .run(until, began + 10)
            .ask(first, 100)
            .grant(first, 110, 100, 910)
            .loss(first, 200, why)
            .check({.causes_noted = true});
    };
    const auto forced = [&told](int began) {
        return broken(told(kind::forcing, kind::forced_over, reason::administrator, began));
    };
    const auto restarted = [&told](int began) {
        return broken(told(kind::server_down, kind::server_started, reason::shutdown, began));
    };
    for (const auto& at : {std::function{forced}, std::function{restarted}}) {
        EXPECT_THAT(at(89), ElementsAre(invariant::told_for_cause));
        EXPECT_THAT(at(90), IsEmpty());
        EXPECT_THAT(at(200), IsEmpty());
        EXPECT_THAT(at(201), ElementsAre(invariant::told_for_cause));
    }
    EXPECT_THAT(broken(told(kind::forcing, kind::forced_over, reason::shutdown, 150)),
                ElementsAre(invariant::told_for_cause));
    EXPECT_THAT(broken(told(kind::server_down, kind::server_started, reason::administrator, 150)),
                ElementsAre(invariant::told_for_cause));
    EXPECT_THAT(broken(tale{}.ask(first, 0).loss(first, 9, reason::shutdown).check()), IsEmpty())
        << "where nobody notes them";
}

constexpr settings noted{.faults_noted = true};

// Heard at 400 for the last time: its deadline is at 1200, its lease over at 1400.
tale lost_at(int at, reason why) {
    return tale{}
        .worker(kind::near, 1, 0)
        .ask(first, 0)
        .grant(first, 10, 100, 800)
        .confirmed(first, 410, 1200)
        .loss(first, at, why);
}

TEST(LostForCause, IsBrokenByAConnectionThatNobodyBroke) {
    const report made = lost_at(1000, reason::closed).check(noted);
    EXPECT_THAT(broken(made), ElementsAre(invariant::lost_for_cause));
    EXPECT_EQ(made.of(invariant::lost_for_cause).violations, 1U);
    EXPECT_EQ(made.of(invariant::lost_for_cause).checked, 1U);
    EXPECT_EQ(made.violations()[0].how, "lost by closed, 600.000 ms after it was heard");
    EXPECT_THAT(broken(lost_at(1000, reason::closed).check()), IsEmpty())
        << "where nobody notes them";
}

TEST(LostForCause, AResetAnOperatorOrAnEndOfTheServerIsOne) {
    const auto told = [](const tale& how) {
        const report made = how.check(noted);
        return made.violations().empty() && made.of(invariant::lost_for_cause).checked == 1;
    };
    for (const int at : {5, 400, 990}) {
        EXPECT_TRUE(told(lost_at(1000, reason::closed).worker(kind::resetting, 1, at)));
        EXPECT_TRUE(told(lost_at(1000, reason::closed).run(kind::forcing, at)));
        EXPECT_TRUE(told(lost_at(1000, reason::closed).run(kind::server_down, at)));
    }
    const tale closed = lost_at(1000, reason::closed);
    EXPECT_FALSE(told(tale{closed}.worker(kind::resetting, 1, 1001)));
    EXPECT_FALSE(told(tale{closed}.worker(kind::resetting, 2, 400))) << "of another worker";
    EXPECT_FALSE(told(tale{closed}.run(kind::server_down, 1001)));
}

TEST(LostForCause, AnEndOfTheServerThatBeganBeforeTheAskIsOne) {
    EXPECT_THAT(broken(tale{}
                           .run(kind::server_down, 0)
                           .ask(first, 5)
                           .grant(first, 10, 100, 805)
                           .loss(first, 20, reason::closed)
                           .run(kind::server_started, 30)
                           .check(noted)),
                IsEmpty());
}

// The network of a worker that is not near loses as it likes, but closes nothing by itself.
TEST(LostForCause, SilenceIsNoneBeforeTheLeaseIsOver) {
    const auto paused = [](int at) {
        return lost_at(at, reason::closed)
            .worker(kind::paused, 1, 450)
            .worker(kind::resumed, 1, 990)
            .check(noted);
    };
    EXPECT_THAT(broken(paused(1399)), ElementsAre(invariant::lost_for_cause));
    EXPECT_THAT(broken(paused(1400)), IsEmpty());
    const auto far = [](int at) {
        return tale{}
            .ask(first, 0)
            .grant(first, 10, 100, 800)
            .loss(first, at, reason::closed)
            .check(noted);
    };
    EXPECT_EQ(far(999).of(invariant::lost_for_cause).violations, 1U);
    EXPECT_EQ(far(1000).of(invariant::lost_for_cause).violations, 0U);
    EXPECT_EQ(far(1000).of(invariant::lost_for_cause).passed_over, 1U);
}

TEST(LostForCause, NoClientIsSilencedBeforeItsDeadline) {
    const report made = lost_at(1199, reason::silence).worker(kind::paused, 1, 500).check(noted);
    EXPECT_THAT(broken(made), ElementsAre(invariant::lost_for_cause));
    EXPECT_FALSE(only_late(made));
}

TEST(LostForCause, SilenceOfANearWorkerIsSomebodys) {
    const auto lost = [](kind since, int from, kind until, int to) {
        return lost_at(1210, reason::silence)
            .worker(since, 1, from)
            .worker(until, 1, to)
            .check(noted);
    };
    EXPECT_TRUE(only_late(lost_at(1210, reason::silence).check(noted)));
    EXPECT_TRUE(only_late(lost_at(1410, reason::closed).check(noted)));
    for (const auto& [since, until] : {std::pair{kind::paused, kind::resumed},
                                       {kind::silent, kind::heard},
                                       {kind::server_paused, kind::server_serves},
                                       {kind::resetting, kind::reset_over}}) {
        EXPECT_THAT(broken(lost(since, 300, until, 401)), IsEmpty()) << to_string(since);
        EXPECT_THAT(broken(lost(since, 1205, until, 1300)), IsEmpty()) << to_string(since);
        EXPECT_TRUE(only_late(lost(since, 1211, until, 1300))) << to_string(since);
    }
    EXPECT_TRUE(only_late(lost(kind::paused, 300, kind::resumed, 399)));
}

TEST(LostForCause, AWaiterIsHeldToItsAsk) {
    const auto lost = [](int at, reason why) {
        return tale{}
            .worker(kind::near, 1, 0)
            .ask(first, 100)
            .waiting(first, 110)
            .loss(first, at, why)
            .check(noted);
    };
    EXPECT_FALSE(only_late(lost(1099, reason::closed)));
    EXPECT_TRUE(only_late(lost(1100, reason::closed)));
    EXPECT_FALSE(only_late(lost(899, reason::silence)));
    EXPECT_TRUE(only_late(lost(900, reason::silence)));
    EXPECT_THAT(broken(tale{}.ask(first, 0).loss(first, 9, reason::closed).check(noted)), IsEmpty())
        << "never admitted";
}

// ---- stories

TEST(ProtocolKept, IsBrokenByAViolationOrARefusal) {
    EXPECT_THAT(broken(tale{}.ask(first, 0).loss(first, 10, reason::violation).check()),
                ElementsAre(invariant::protocol_kept));
    EXPECT_THAT(broken(tale{}.ask(first, 0).loss(first, 10, reason::refused).check()),
                ElementsAre(invariant::protocol_kept));
    EXPECT_THAT(broken(tale{}.ask(first, 0).loss(first, 10, reason::closed).check()), IsEmpty());
}

TEST(PossibleStory, IsBrokenByWhatNoClaimDoes) {
    const auto impossible = [](const tale& told) {
        return broken(told.check()) == std::vector{invariant::possible_story};
    };
    const tale granted = tale{}.ask(first, 0).grant(first, 10, 100, 800);
    EXPECT_TRUE(impossible(tale{}.waiting(first, 0)));
    EXPECT_TRUE(impossible(tale{granted}.ask(first, 11)));
    EXPECT_TRUE(impossible(tale{granted}.waiting(first, 11)));
    EXPECT_TRUE(impossible(tale{granted}.end(first, 11).loss(first, 12)));
    EXPECT_TRUE(impossible(tale{}.ask(first, 0).end(first, 11).grant(first, 12, 100, 800)));
    EXPECT_TRUE(impossible(tale{granted}.closed(first, 12)));
    EXPECT_TRUE(impossible(tale{}.ask(first, 0).confirmed(first, 12, 800)));
    EXPECT_TRUE(impossible(tale{}.ask(first, 0).act(first, 12)));
}

TEST(PossibleStory, OfAKilledProcessNothingIsAskedAfterwards) {
    EXPECT_THAT(broken(tale{}
                           .ask(first, 0)
                           .grant(first, 10, 100, 800)
                           .worker(kind::killed, 1, 20)
                           .act(first, 21)
                           .ask({1, 2}, 22)
                           .run(kind::calm, 30)
                           .run(kind::finish, 40)
                           .check(strict)),
                IsEmpty());
}

TEST(Report, KeepsSomeOfEachInvariantAndCountsAll) {
    tale told;
    for (std::uint32_t number = 0; number < 150; ++number) {
        told.ask({1, number}, 0).loss({1, number}, 1, reason::violation);
    }
    told.ask(second, 0).grant(second, 1, 0, 800);
    const report made = told.check();
    EXPECT_EQ(made.violations().size(), report::kept_max + 1);
    EXPECT_EQ(made.count(severity::unsafe), 151U);
    EXPECT_EQ(made.of(invariant::protocol_kept).violations, 150U);
}

}  // namespace
}  // namespace monolock::history
