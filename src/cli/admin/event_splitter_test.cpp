#include "cli/admin/event_splitter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monolock::cli {
namespace {

constexpr std::string_view stream =
    "event: activity\ndata: {\"locks\":1}\n\n"
    ": nothing to see\n\n"
    "event:change\nid: 7\ndata:first\ndata:  second\n\n"
    "data: plain\n\n"
    "event: unfin";

std::vector<std::string> all_of(event_splitter& splitter) {
    std::vector<std::string> out;
    while (const auto event = splitter.next()) {
        out.push_back(event->kind + "|" + event->data);
    }
    return out;
}

TEST(event_splitter, takes_events_and_passes_over_the_rest) {
    event_splitter splitter;
    splitter.feed(stream);
    EXPECT_EQ(all_of(splitter),
              (std::vector<std::string>{"activity|{\"locks\":1}", "change|first\n second",
                                        "message|plain"}));
    EXPECT_EQ(splitter.pending_bytes(), std::string_view{"event: unfin"}.size());
    splitter.feed("ished\ndata: end\n\n");
    EXPECT_EQ(all_of(splitter), std::vector<std::string>{"unfinished|end"});
    EXPECT_EQ(splitter.pending_bytes(), 0U);
}

TEST(event_splitter, it_does_not_matter_how_it_is_cut) {
    event_splitter whole;
    whole.feed(stream);
    const auto expected = all_of(whole);
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        event_splitter splitter;
        splitter.feed(stream.substr(0, cut));
        auto found = all_of(splitter);
        splitter.feed(stream.substr(cut));
        for (std::string& event : all_of(splitter)) {
            found.push_back(std::move(event));
        }
        EXPECT_EQ(found, expected) << "cut at " << cut;
    }
}

}  // namespace
}  // namespace monolock::cli
