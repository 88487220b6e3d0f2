#include "protocol/utf8.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "fuzz/utf8_oracle.hpp"
#include "vectors/vector_file.hpp"

namespace monolock::protocol {
namespace {

char letter(unsigned value) {
    return static_cast<char>(value);
}

void expect_like_oracle(std::string_view text) {
    const bool expected = fuzz::utf8_oracle(text);
    if (is_valid_utf8(text) == expected) {
        return;  // tens of millions of EXPECTs would take minutes
    }
    std::string bytes;
    for (const char byte : text) {
        bytes += " " + std::to_string(static_cast<std::uint8_t>(byte));
    }
    ADD_FAILURE() << "bytes" << bytes << ": expected " << expected;
}

TEST(utf8, accepts_what_the_name_vectors_accept) {
    for (const auto& vector : vectors::load("names.json", "names")) {
        const std::string name = vectors::bytes_at(vector["name_hex"]);
        const bool about_utf8 = vector["valid"] || vectors::code_at(vector["code"]) == 0x16;
        if (about_utf8) {
            EXPECT_EQ(is_valid_utf8(name), vector["valid"].get<bool>()) << vector["about"];
        }
    }
}

TEST(utf8, empty_text_is_well_formed) {
    EXPECT_TRUE(is_valid_utf8(""));
}

TEST(utf8, agrees_with_the_oracle_on_every_text_of_up_to_three_bytes) {
    std::string text;
    for (unsigned first = 0; first < 256; ++first) {
        text.assign(1, letter(first));
        expect_like_oracle(text);
        for (unsigned second = 0; second < 256; ++second) {
            text.assign({letter(first), letter(second)});
            expect_like_oracle(text);
            // A pair of ASCII settles nothing that the pair alone did not.
            for (unsigned third = 0; third < 256 && first >= 0x80; ++third) {
                text.assign({letter(first), letter(second), letter(third)});
                expect_like_oracle(text);
            }
        }
    }
}

TEST(utf8, agrees_with_the_oracle_on_four_bytes_around_every_boundary) {
    const unsigned edges[] = {0x00, 0x7F, 0x80, 0x81, 0xBE, 0xBF, 0xC0, 0xFF};
    for (unsigned first = 0x80; first < 256; ++first) {
        // What does not begin four bytes must not begin them with any others either.
        const unsigned step = first < 0xE0 ? 0x10 : 1;
        for (unsigned second = 0; second < 256; second += step) {
            for (const unsigned third : edges) {
                for (const unsigned fourth : edges) {
                    expect_like_oracle(
                        std::string{letter(first), letter(second), letter(third), letter(fourth)});
                }
            }
        }
    }
}

TEST(utf8, accepts_every_character_and_refuses_it_cut_off) {
    for (unsigned value = 0; value <= 0x10FFFF; ++value) {
        if (value >= 0xD800 && value <= 0xDFFF) {
            continue;
        }
        std::string text;
        if (value < 0x80) {
            text = {letter(value)};
        } else if (value < 0x800) {
            text = {letter(0xC0 | value >> 6), letter(0x80 | (value & 63))};
        } else if (value < 0x10000) {
            text = {letter(0xE0 | value >> 12), letter(0x80 | (value >> 6 & 63)),
                    letter(0x80 | (value & 63))};
        } else {
            text = {letter(0xF0 | value >> 18), letter(0x80 | (value >> 12 & 63)),
                    letter(0x80 | (value >> 6 & 63)), letter(0x80 | (value & 63))};
        }
        ASSERT_TRUE(is_valid_utf8(text)) << value;
        if (text.size() > 1) {
            text.pop_back();
            ASSERT_FALSE(is_valid_utf8(text)) << value;
        }
    }
}

}  // namespace
}  // namespace monolock::protocol
