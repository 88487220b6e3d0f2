#include "history/recording.hpp"

#include <gtest/gtest.h>

namespace monolock::history {
namespace {

// What reading the text says is wrong with it; empty if nothing is.
std::string verdict(std::string_view text) {
    recording_reader reader;
    try {
        reader.read(text, "file");
    } catch (const malformed& why) {
        return why.what();
    }
    return {};
}

TEST(Recording, ReadsWhatItWrites) {
    for (std::size_t number = 0; number < kinds; ++number) {
        const auto what = static_cast<kind>(number);
        event written{.at = instant{7}, .what = what};
        std::string lock;
        switch (what) {
            case kind::ask:
                written.lease = instant{12};
                written.claim = {3, 4};
                lock = "a \"lock\"\n";
                break;
            case kind::grant:
                written.token = (std::uint64_t{1} << 63U) + 1;
                written.until = instant{13};
                written.claim = {3, 4};
                break;
            case kind::loss:
                written.why = reason::silence;
                written.claim = {3, 4};
                break;
            case kind::confirmed:
                written.until = instant{13};
                written.claim = {3, 4};
                break;
            case kind::waiting:
            case kind::act:
            case kind::end:
            case kind::closed:
                written.claim = {3, 4};
                break;
            case kind::near:
            case kind::paused:
            case kind::resumed:
            case kind::killed:
            case kind::silent:
            case kind::heard:
            case kind::resetting:
            case kind::reset_over:
                written.claim = {3, 0};
                break;
            case kind::server_started:
                written.wall_clock_right = false;
                break;
            case kind::forcing:
            case kind::forced_over:
            case kind::server_down:
            case kind::server_paused:
            case kind::server_serves:
            case kind::calm:
            case kind::finish:
                break;
        }
        recording_reader reader;
        reader.read(to_line(written, lock), "file");
        const recording read = reader.take();
        ASSERT_EQ(read.events.size(), 1U) << to_string(what);
        EXPECT_FALSE(read.has_setup);
        EXPECT_EQ(read.events[0], written) << to_line(written, lock);
    }
}

TEST(Recording, IsALineAsAnybodyCanWriteIt) {
    EXPECT_EQ(to_line({.at = instant{5},
                       .what = kind::grant,
                       .claim = {1, 2},
                       .token = 9,
                       .until = instant{8}}),
              R"({"t":5,"kind":"grant","worker":1,"claim":2,"token":9,"until":8})"
              "\n");
    EXPECT_EQ(
        to_line({.at = instant{5}, .what = kind::ask, .claim = {1, 2}, .lease = instant{8}}, "a"),
        R"({"t":5,"kind":"ask","worker":1,"claim":2,"lock":"a","lease_ns":8})"
        "\n");
}

TEST(Recording, PutsFilesTogetherByTimeAndNamesByNumber) {
    recording_reader reader;
    reader.read(R"({"kind":"setup","scenario":"made up","seed":3,"handover_ms":1,"slack_ms":2,)"
                R"("served_ms":3,"causes_noted":true,"faults_noted":true})"
                "\n"
                R"({"t":9,"kind":"calm"})"
                "\n",
                "one");
    reader.read(R"({"t":8,"kind":"forcing","lock":"b"})"
                "\n"
                R"({"t":2,"kind":"forcing","lock":"a"})"
                "\n"
                R"({"t":9,"kind":"forcing","lock":"b"})"
                "\n"
                R"({"t":10,"ki)",
                "two");
    const recording read = reader.take();
    EXPECT_TRUE(read.has_setup);
    EXPECT_EQ(read.scenario, "made up");
    EXPECT_EQ(read.seed, 3U);
    EXPECT_EQ(read.limits, (settings{.handover_max = std::chrono::milliseconds{1},
                                     .silence_slack = std::chrono::milliseconds{2},
                                     .served_within = std::chrono::milliseconds{3},
                                     .causes_noted = true,
                                     .faults_noted = true}));
    EXPECT_EQ(read.torn_lines, 1U);
    ASSERT_EQ(read.events.size(), 4U);
    EXPECT_EQ(read.lock_names, (std::vector<std::string>{"b", "a"}));
    EXPECT_EQ(read.events[0].lock, 1U);
    EXPECT_EQ(read.events[1].lock, 0U);
    EXPECT_EQ(read.events[2].what, kind::calm);  // read before the one of the same time
}

TEST(Recording, SaysWhereAndWhatIsWrong) {
    EXPECT_EQ(verdict(R"({"t":1,"kind":"calm"})"
                      "\n"
                      "{}\n"),
              "file:2: no kind");
    EXPECT_EQ(verdict("\n"), "file:1: not a JSON object");
    EXPECT_EQ(verdict("[]\n"), "file:1: not a JSON object");
    EXPECT_EQ(verdict(R"({"kind":"calm"})"
                      "\n"),
              "file:1: no t");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"clam"})"
                      "\n"),
              "file:1: unknown kind: clam");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"calm","t":2})"
                      "\n"),
              "file:1: a key twice, or an object within");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"calm","worker":1})"
                      "\n"),
              "file:1: a key that its kind does not have");
    EXPECT_EQ(verdict(R"({"t":-1,"kind":"calm"})"
                      "\n"),
              "file:1: t is not a number that it can be");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"near","worker":4294967296})"
                      "\n"),
              "file:1: worker is not a number that it can be");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"near","worker":"1"})"
                      "\n"),
              "file:1: worker is not a number that it can be");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"loss","worker":1,"claim":1,"why":"rain"})"
                      "\n"),
              "file:1: unknown reason: rain");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"forcing","lock":1})"
                      "\n"),
              "file:1: lock is not a string");
    EXPECT_EQ(verdict(R"({"t":1,"kind":"server_started","wall_clock_right":1})"
                      "\n"),
              "file:1: wall_clock_right is neither true nor false");
    const std::string setup =
        R"({"kind":"setup","scenario":"s","seed":3,"handover_ms":1,"slack_ms":2,)"
        R"("served_ms":3,"causes_noted":true,"faults_noted":true})"
        "\n";
    EXPECT_EQ(verdict(setup + setup), "file:2: a second setup");
}

}  // namespace
}  // namespace monolock::history
