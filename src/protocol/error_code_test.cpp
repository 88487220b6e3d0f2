#include "protocol/error_code.hpp"

#include <gtest/gtest.h>

#include "vectors/vector_file.hpp"

namespace monolock::protocol {
namespace {

TEST(error_code, class_and_reason_of_all_256_follow_the_vectors) {
    const auto codes = vectors::load("error_codes.json", "codes");
    ASSERT_EQ(codes.size(), 256U);
    for (const auto& vector : codes) {
        const auto code = static_cast<error_code>(vectors::code_at(vector["code"]));
        EXPECT_EQ(is_temporary(code), vector["class"] == "server condition") << vector;
        EXPECT_EQ(canonical_reason(code), vector.value("reason", "unknown error")) << vector;
    }
}

// Callers in other places rely on the split being usable at compile time.
static_assert(is_temporary(error_code::closed_by_administrator));
static_assert(!is_temporary(error_code::unsupported_version));

}  // namespace
}  // namespace monolock::protocol
