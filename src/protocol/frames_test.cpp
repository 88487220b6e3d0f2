#include "protocol/frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vectors/vector_file.hpp"

namespace monolock::protocol {
namespace {

using vectors::as_bytes;
using vectors::bytes_at;
using vectors::code_at;
using vectors::json;

std::string text_of(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        text.push_back(static_cast<char>(byte));
    }
    return text;
}

// What a decoder made of the first message, in the terms of the vectors.
struct first_message_outcome {
    std::string result{};
    std::size_t settled_at = 0;
    std::string name{};
    std::uint32_t lease_ms = 0;
    std::uint8_t code = 0;
    std::string reason{};

    friend bool operator==(const first_message_outcome&, const first_message_outcome&) = default;

    friend std::ostream& operator<<(std::ostream& out, const first_message_outcome& self) {
        return out << self.result << " after " << self.settled_at << " bytes, code "
                   << static_cast<int>(self.code) << " '" << self.reason << "', lease "
                   << self.lease_ms << ", name of " << self.name.size() << " bytes";
    }
};

first_message_outcome decode_first_message(const std::vector<std::string_view>& pieces) {
    acquire_decoder decoder;
    std::size_t taken = 0;
    for (const std::string_view piece : pieces) {
        std::size_t used = 0;
        const auto status = decoder.feed(as_bytes(piece), used);
        taken += used;
        switch (status) {
            case acquire_decoder::status::need_more:
                EXPECT_EQ(used, piece.size()) << "asks for more and leaves bytes";
                break;
            case acquire_decoder::status::complete: {
                const auto request = decoder.take_request();
                return {.result = "accepted",
                        .settled_at = taken,
                        .name = request.name,
                        .lease_ms = request.lease_ms};
            }
            case acquire_decoder::status::malformed:
                return {.result = "refused",
                        .settled_at = taken,
                        .code = static_cast<std::uint8_t>(decoder.error().code),
                        .reason = decoder.error().reason};
        }
    }
    return {.result = "incomplete"};
}

first_message_outcome expected_first_message(const json& vector) {
    first_message_outcome outcome{.result = vector["result"]};
    outcome.settled_at = vector.value("settled_at", std::size_t{0});
    if (outcome.result == "accepted") {
        outcome.name = bytes_at(vector["name_hex"]);
        outcome.lease_ms = vector["lease_ms"];
    } else if (outcome.result == "refused") {
        outcome.code = code_at(vector["code"]);
        outcome.reason = vector["reason"];
    }
    return outcome;
}

TEST(acquire_decoder, follows_the_vectors_however_the_bytes_are_cut) {
    for (const auto& vector : vectors::load("first_message.json", "messages")) {
        const std::string bytes = bytes_at(vector["bytes_hex"]);
        for (const auto& pieces : vectors::all_cuts(bytes)) {
            EXPECT_EQ(decode_first_message(pieces), expected_first_message(vector))
                << vector["about"] << " in " << pieces.size() << " pieces, the first of "
                << pieces[0].size();
        }
    }
}

TEST(acquire_decoder, judges_each_byte_that_a_connection_can_open_with) {
    const auto first_bytes = vectors::load("first_message.json", "first_bytes");
    ASSERT_EQ(first_bytes.size(), 256U);
    for (const auto& vector : first_bytes) {
        const std::string bytes = bytes_at(vector["bytes_hex"]);
        EXPECT_EQ(decode_first_message({bytes}), expected_first_message(vector)) << vector;
    }
}

TEST(acquire_decoder, takes_an_empty_piece_without_deciding) {
    acquire_decoder decoder;
    std::size_t used = 1;
    EXPECT_EQ(decoder.feed({}, used), acquire_decoder::status::need_more);
    EXPECT_EQ(used, 0U);
}

// What a client encodes is what the vectors hold: the accepted ones, up to what follows them.
TEST(encode_acquire, writes_the_bytes_of_the_vectors) {
    for (const auto& vector : vectors::load("first_message.json", "messages")) {
        if (vector["result"] != "accepted") {
            continue;
        }
        const std::string name = bytes_at(vector["name_hex"]);
        const auto frame = encode_acquire(vector["lease_ms"].get<std::uint32_t>(), name);
        EXPECT_EQ(text_of(frame.bytes()),
                  bytes_at(vector["bytes_hex"]).substr(0, vector["settled_at"].get<std::size_t>()))
            << vector["about"];
    }
}

TEST(session_message, each_of_the_256_bytes_follows_the_vectors) {
    const auto messages = vectors::load("session_message.json", "messages");
    ASSERT_EQ(messages.size(), 256U);
    for (const auto& vector : messages) {
        const std::string bytes = bytes_at(vector["bytes_hex"]);
        const auto refused = check_session_message(static_cast<std::byte>(bytes[0]));
        ASSERT_EQ(refused.has_value(), vector["result"] == "refused") << vector;
        if (refused) {
            EXPECT_EQ(static_cast<std::uint8_t>(refused->code), code_at(vector["code"])) << vector;
            EXPECT_EQ(refused->reason, vector["reason"]) << vector;
        }
    }
}

server_frame frame_of(const json& meaning) {
    if (meaning["type"] == "waiting") {
        return waiting{};
    }
    if (meaning["type"] == "acquired") {
        return acquired{.token = {std::stoull(meaning["token"].get<std::string>())}};
    }
    return error{.code = static_cast<error_code>(code_at(meaning["code"])),
                 .reason = meaning["reason"]};
}

std::string encode(const server_frame& frame) {
    if (std::holds_alternative<waiting>(frame)) {
        return text_of(waiting_frame);
    }
    if (const auto* grant = std::get_if<acquired>(&frame)) {
        return text_of(encode_acquired(grant->token));
    }
    const auto& refusal = std::get<error>(frame);
    return text_of(encode_error(refusal.code, refusal.reason).bytes());
}

// The frames of a stream, and what its end is, in the terms of the vectors.
struct stream_meaning {
    std::vector<server_frame> frames;
    std::string then;
};

stream_meaning decode_stream(const std::vector<std::string_view>& pieces) {
    server_frame_decoder decoder;
    stream_meaning meaning;
    std::size_t open_bytes = 0;  // of a frame that has begun
    for (std::string_view piece : pieces) {
        while (!piece.empty()) {
            std::size_t used = 0;
            const auto status = decoder.feed(as_bytes(piece), used);
            piece.remove_prefix(used);
            open_bytes += used;
            switch (status) {
                case server_frame_decoder::status::need_more:
                    EXPECT_TRUE(piece.empty()) << "asks for more and leaves bytes";
                    break;
                case server_frame_decoder::status::frame:
                    meaning.frames.push_back(decoder.take_frame());
                    open_bytes = 0;
                    break;
                case server_frame_decoder::status::malformed: {
                    std::array<char, 24> text{};
                    std::snprintf(text.data(), text.size(), "unknown type 0x%02x",
                                  static_cast<unsigned>(decoder.unknown_type()));
                    meaning.then = text.data();
                    return meaning;
                }
            }
        }
    }
    meaning.then = open_bytes == 0 ? "end" : "incomplete";
    return meaning;
}

TEST(server_frame_decoder, follows_the_vectors_however_the_bytes_are_cut) {
    for (const auto& vector : vectors::load("server_frames.json", "streams")) {
        std::vector<server_frame> expected;
        for (const auto& meaning : vector["frames"]) {
            expected.push_back(frame_of(meaning));
        }
        const std::string bytes = bytes_at(vector["bytes_hex"]);
        for (const auto& pieces : vectors::all_cuts(bytes)) {
            const auto meaning = decode_stream(pieces);
            EXPECT_EQ(meaning.frames, expected) << vector["about"];
            EXPECT_EQ(meaning.then, vector["then"]) << vector["about"];
        }
    }
}

TEST(server_frame_encoders, write_the_bytes_of_the_vectors) {
    for (const auto& vector : vectors::load("server_frames.json", "streams")) {
        std::string written;
        for (const auto& meaning : vector["frames"]) {
            written += encode(frame_of(meaning));
        }
        EXPECT_EQ(written, bytes_at(vector["bytes_hex"]).substr(0, written.size()))
            << vector["about"];
    }
}

TEST(decoders, say_how_much_they_took_whatever_was_there_before) {
    constexpr std::size_t other = 77;
    std::size_t used = other;
    server_frame_decoder frames;
    ASSERT_EQ(frames.feed(waiting_frame, used), server_frame_decoder::status::frame);
    EXPECT_EQ(used, 1U);
    used = other;
    ASSERT_EQ(frames.feed({}, used), server_frame_decoder::status::need_more);
    EXPECT_EQ(used, 0U);
    used = other;
    acquire_decoder acquires;
    ASSERT_EQ(acquires.feed(std::span{heartbeat_frame}, used), acquire_decoder::status::malformed);
    EXPECT_EQ(used, 1U);
}

TEST(server_frame_decoder, stays_malformed_about_the_same_byte) {
    server_frame_decoder decoder;
    std::size_t used = 0;
    const std::string noise = "HTTP/1.1 400 Bad Request";
    ASSERT_EQ(decoder.feed(as_bytes(noise), used), server_frame_decoder::status::malformed);
    EXPECT_EQ(used, 1U);
    EXPECT_EQ(decoder.unknown_type(), 'H');
}

std::string reason_on_the_wire(std::string_view reason) {
    const auto frame = text_of(encode_error(error_code::server_shutting_down, reason).bytes());
    EXPECT_EQ(frame.size(), 3 + static_cast<std::uint8_t>(frame[2]));
    return frame.substr(3);
}

TEST(encode_error, cuts_a_long_reason_between_characters) {
    const std::string fits(255, 'r');
    EXPECT_EQ(reason_on_the_wire(fits), fits);
    EXPECT_EQ(reason_on_the_wire(fits + "r"), fits);
    // U+20AC has three bytes: begun at 253 or 254 it would be cut, begun at 252 it just fits.
    const std::string euro = "\xE2\x82\xAC";
    EXPECT_EQ(reason_on_the_wire(std::string(254, 'r') + euro), std::string(254, 'r'));
    EXPECT_EQ(reason_on_the_wire(std::string(253, 'r') + euro), std::string(253, 'r'));
    EXPECT_EQ(reason_on_the_wire(std::string(252, 'r') + euro + "r"), std::string(252, 'r') + euro);
    for (int second = 0x80; second <= 0xBF; ++second) {
        const std::string letter{'\xC3', static_cast<char>(second)};
        EXPECT_EQ(reason_on_the_wire(std::string(254, 'r') + letter), std::string(254, 'r'));
    }
}

// Bytes that are no text at all must not run past the frame either.
TEST(encode_error, survives_a_reason_of_continuation_bytes) {
    EXPECT_EQ(reason_on_the_wire(std::string(400, '\x80')), "");
}

}  // namespace
}  // namespace monolock::protocol
