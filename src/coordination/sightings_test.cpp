#include "coordination/sightings.hpp"

#include <gtest/gtest.h>

namespace monolock::coordination {
namespace {

using namespace std::chrono_literals;

time_point at(nanoseconds since_start) {
    return time_point{1h + since_start};
}

active_entry renewal(std::int64_t of, std::uint64_t sequence) {
    return {.value = {.name = "b", .ttl = 4s, .sequence = sequence},
            .created = {of},
            .modified = {of + static_cast<std::int64_t>(sequence)}};
}

state_record state(std::int64_t of, std::uint64_t sequence, std::chrono::milliseconds ttl = 4s) {
    return {.ceiling = 0,
            .longest_lease = 0ms,
            .name = "b",
            .ttl = ttl,
            .written_in = {of},
            .sequence = sequence,
            .resigned = false};
}

// Who wins term 100 at 50 s, with a TTL of 5 s.
time_point opens(const sightings& seen, const std::optional<state_record>& before) {
    return seen.opens_at(before, {100}, at(50s), 5s);
}

TEST(sightings, without_any_it_waits_for_the_larger_ttl_after_winning) {
    const sightings none;
    EXPECT_EQ(opens(none, std::nullopt), at(55s));
    EXPECT_EQ(opens(none, state(7, 3)), at(55s));
    EXPECT_EQ(opens(none, state(7, 3, 9s)), at(59s));
}

TEST(sightings, the_very_last_renewal_counts_from_when_it_was_seen_first) {
    sightings seen;
    seen.saw(renewal(7, 2), at(40s));
    seen.saw(renewal(7, 3), at(47s));
    seen.saw(renewal(7, 3), at(49s));
    seen.saw(renewal(7, 2), at(49s));  // an answer that was overtaken
    EXPECT_EQ(opens(seen, state(7, 3)), at(51s));
    EXPECT_EQ(opens(seen, state(7, 2)), at(55s)) << "another than the last that was seen";
    EXPECT_EQ(opens(seen, state(7, 4)), at(55s)) << "a later one was not seen";
    EXPECT_EQ(opens(seen, state(8, 3)), at(55s)) << "another term's";
    EXPECT_EQ(opens(seen, state(7, 3, 9s)), at(56s)) << "the TTL that the state names";
}

TEST(sightings, its_own_renewals_count_from_when_the_last_was_sent) {
    sightings seen;
    seen.sent({7}, 3, at(41s));
    seen.saw(renewal(7, 3), at(49s));
    EXPECT_EQ(opens(seen, state(7, 3)), at(45s));
    EXPECT_EQ(opens(seen, state(7, 2)), at(45s)) << "the last that came through was an earlier one";
    EXPECT_EQ(opens(seen, state(7, 4)), at(55s)) << "which it never sent";
}

TEST(sightings, nobody_waits_for_who_resigned) {
    const sightings none;
    state_record before = state(7, 3);
    before.resigned = true;
    EXPECT_EQ(opens(none, before), at(50s));
}

TEST(sightings, a_state_that_makes_no_sense_opens_nothing_sooner) {
    sightings seen;
    seen.saw(renewal(100, 3), at(40s));
    seen.saw(renewal(200, 3), at(40s));
    state_record before = state(200, 3);
    before.resigned = true;
    EXPECT_EQ(opens(seen, before), at(55s)) << "of a term that is yet to come";
    EXPECT_EQ(opens(seen, state(100, 3)), at(55s)) << "of the very term that was won";
    seen.saw(renewal(7, 3), at(40s));
    EXPECT_EQ(opens(seen, state(7, 3, 0s)), at(55s));
    EXPECT_EQ(opens(seen, state(7, 3, -9s)), at(55s));
    EXPECT_EQ(opens(seen, state(8, 3, std::chrono::milliseconds::max())), at(50s + 24h * 365))
        << "long, but a time";
}

// The watch tells of what this server's campaign put before the campaign is answered.
TEST(sightings, the_own_campaign_hides_nothing) {
    sightings seen;
    seen.saw(renewal(7, 3), at(47s));
    seen.saw(renewal(100, 0), at(50s));
    EXPECT_EQ(opens(seen, state(7, 3)), at(51s));
}

TEST(sightings, nor_does_one_that_died_before_it_renewed) {
    sightings seen;
    seen.saw(renewal(7, 3), at(47s));
    for (const std::int64_t of : {70, 80, 90}) {
        seen.saw(renewal(of, 0), at(48s));
    }
    EXPECT_EQ(opens(seen, state(7, 3)), at(51s));
    seen.saw(renewal(95, 0), at(49s));
    EXPECT_EQ(opens(seen, state(7, 3)), at(55s)) << "four are remembered, the fifth is waited for";
    seen.saw(renewal(7, 4), at(49s));
    EXPECT_EQ(opens(seen, state(7, 4)), at(55s)) << "nor does it come back";
    EXPECT_EQ(opens(seen, state(95, 0)), at(53s));
}

TEST(sightings, what_comes_late_of_an_earlier_term_moves_nothing) {
    sightings seen;
    seen.saw(renewal(8, 3), at(47s));
    seen.saw(renewal(7, 90), at(48s));
    EXPECT_EQ(opens(seen, state(8, 3)), at(51s));
    EXPECT_EQ(opens(seen, state(7, 90)), at(52s));
}

}  // namespace
}  // namespace monolock::coordination
