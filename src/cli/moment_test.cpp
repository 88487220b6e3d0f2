#include "cli/moment.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monolock::cli {
namespace {

std::string read(std::string_view text) {
    const auto moment = parse_moment(text);
    std::string out;
    if (moment) {
        telemetry::append_rfc3339(out, *moment);
    }
    return out;
}

TEST(moment, as_people_type_it) {
    EXPECT_EQ(read("2026-03-01"), "2026-03-01T00:00:00.000Z");
    EXPECT_EQ(read("2026-03-01T09:30"), "2026-03-01T09:30:00.000Z");
    EXPECT_EQ(read("2026-03-01T09:30Z"), "2026-03-01T09:30:00.000Z");
    EXPECT_EQ(read("2026-03-01T09:30:05"), "2026-03-01T09:30:05.000Z");
    EXPECT_EQ(read("2026-03-01T09:30:05.2"), "2026-03-01T09:30:05.200Z");
    EXPECT_EQ(read("2026-03-01T09:30:05.250Z"), "2026-03-01T09:30:05.250Z");
    EXPECT_EQ(read("2024-02-29T23:59:59.999Z"), "2024-02-29T23:59:59.999Z");
}

TEST(moment, what_is_none) {
    for (const std::string_view text : {"",
                                        "Z",
                                        "now",
                                        "2026",
                                        "2026-03",
                                        "2026-03-01Z",
                                        "2026-3-1",
                                        "2026-02-29",
                                        "2026-03-01T",
                                        "2026-03-01T09",
                                        "2026-03-01T24:00",
                                        "2026-03-01T09:60",
                                        "2026-03-01T09:30:60",
                                        "2026-03-01T09:30:05.",
                                        "2026-03-01T09:30:05.2500",
                                        "2026-03-01T09:30:05+01:00",
                                        "2026-03-01 09:30",
                                        "1969-12-31",
                                        "2262-01-01",
                                        "-026-03-01"}) {
        EXPECT_EQ(read(text), "") << text;
    }
}

}  // namespace
}  // namespace monolock::cli
