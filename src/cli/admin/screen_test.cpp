#include "cli/admin/screen.hpp"

#include <gtest/gtest.h>

namespace monolock::cli {
namespace {

TEST(screen, draws_over_what_is_there_and_clears_the_rest) {
    EXPECT_EQ(frame_of("one\ntwo\n", 24), "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
    EXPECT_EQ(frame_of("", 24), "\x1b[H\x1b[J");
}

TEST(screen, shows_no_more_lines_than_it_has) {
    EXPECT_EQ(frame_of("one\ntwo\nthree\n", 2), "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
    EXPECT_EQ(frame_of("one\ntwo", 1), "\x1b[Hone\x1b[K\x1b[J");
}

}  // namespace
}  // namespace monolock::cli
