#include "core/fact.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>

#include "support/journal.hpp"

namespace monolock::core {
namespace {

using namespace std::chrono_literals;

TEST(fact, prints_as_a_line_of_a_story) {
    session who{session_id{3}};
    EXPECT_EQ(support::text_of(queued{.who = &who}), "queued(#3)");
    EXPECT_EQ(support::text_of(granted{.who = &who, .token = {7}, .waited = 5ns}),
              "granted(#3, token 7, waited 5 ns)");
    EXPECT_EQ(
        support::text_of(acknowledged{.who = &who, .state = session_state::owning, .token = {7}}),
        "acknowledged(#3, owning, token 7)");
    EXPECT_EQ(
        support::text_of(ended{
            .who = &who, .why = end_reason::force, .was = session_state::waiting, .lasted = 9ns}),
        "ended(#3, force, was waiting for 9 ns)");
}

TEST(fact, every_state_and_reason_has_its_word) {
    constexpr std::array states{"fresh", "waiting", "owning", "gone", "?"};
    for (std::size_t index = 0; index < states.size(); ++index) {
        EXPECT_EQ(to_string(static_cast<session_state>(index)), states.at(index));
    }
    constexpr std::array reasons{"graceful", "expired", "io_timeout", "force", "?"};
    for (std::size_t index = 0; index < reasons.size(); ++index) {
        EXPECT_EQ(to_string(static_cast<end_reason>(index)), reasons.at(index));
    }
}

}  // namespace
}  // namespace monolock::core
