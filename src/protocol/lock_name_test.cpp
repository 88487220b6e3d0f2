#include "protocol/lock_name.hpp"

#include <gtest/gtest.h>

#include <string>

#include "protocol/frames.hpp"
#include "vectors/vector_file.hpp"

namespace monolock::protocol {
namespace {

TEST(lock_name, is_judged_as_the_vectors_say) {
    for (const auto& vector : vectors::load("names.json", "names")) {
        const auto refused = check_lock_name(vectors::bytes_at(vector["name_hex"]));
        ASSERT_EQ(refused.has_value(), !vector["valid"].get<bool>()) << vector["about"];
        if (refused) {
            EXPECT_EQ(static_cast<std::uint8_t>(*refused), vectors::code_at(vector["code"]))
                << vector["about"];
        }
    }
}

// Nothing on the way from a client to a server's request trims, folds or normalises.
TEST(lock_name, comes_out_of_an_acquire_byte_for_byte) {
    for (const auto& group : vectors::load("names.json", "distinct")) {
        std::vector<std::string> seen;
        for (const auto& hex : group["names_hex"]) {
            const std::string name = vectors::bytes_at(hex);
            ASSERT_FALSE(check_lock_name(name)) << group["about"];
            acquire_decoder decoder;
            std::size_t used = 0;
            ASSERT_EQ(decoder.feed(encode_acquire(1000, name).bytes(), used),
                      acquire_decoder::status::complete);
            seen.push_back(decoder.take_request().name);
            EXPECT_EQ(seen.back(), name) << group["about"];
        }
        for (std::size_t left = 0; left < seen.size(); ++left) {
            for (std::size_t right = left + 1; right < seen.size(); ++right) {
                EXPECT_NE(seen[left], seen[right]) << group["about"];
            }
        }
    }
}

TEST(lock_name, length_is_judged_before_utf8) {
    EXPECT_EQ(check_lock_name(std::string(256, '\xFF')), error_code::lock_name_too_long);
    EXPECT_EQ(check_lock_name(std::string(255, '\xFF')), error_code::lock_name_not_utf8);
}

}  // namespace
}  // namespace monolock::protocol
