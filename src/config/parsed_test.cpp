#include "config/parsed.hpp"

#include <gtest/gtest.h>

namespace monolock::config {
namespace {

TEST(parsed, diagnostics_join_in_one_line) {
    EXPECT_EQ(joined({}), "");
    EXPECT_EQ(joined({{"one"}}), "one");
    EXPECT_EQ(joined({{"one"}, {"two"}, {"three"}}), "one; two; three");
}

}  // namespace
}  // namespace monolock::config
