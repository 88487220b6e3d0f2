#include "protocol/frames.hpp"

#include <cstdio>
#include <utility>

#include "protocol/utf8.hpp"

namespace monolock::protocol {

namespace {

// Offsets in an ACQUIRE.
constexpr std::size_t version_at = 1;
constexpr std::size_t lease_at = 2;
constexpr std::size_t name_length_at = 6;

constexpr std::uint8_t byte_of(std::uint64_t value, int index_from_low) noexcept {
    return static_cast<std::uint8_t>(value >> (8 * index_from_low));
}

std::uint64_t read_big_endian(std::span<const std::uint8_t> bytes) noexcept {
    std::uint64_t value = 0;
    for (const std::uint8_t byte : bytes) {
        value = value << 8U | byte;
    }
    return value;
}

malformed unknown_type_refusal(std::uint8_t type) {
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), "0x%02x", static_cast<unsigned>(type));
    return {.code = error_code::unknown_message_type,
            .reason = std::string{canonical_reason(error_code::unknown_message_type)} + ": " +
                      hex.data()};
}

}  // namespace

malformed refusal(error_code code) {
    return {.code = code, .reason = std::string{canonical_reason(code)}};
}

acquire_frame_bytes encode_acquire(std::uint32_t lease_ms, std::string_view name) {
    acquire_frame_bytes frame;
    frame.push(static_cast<std::uint8_t>(client_message::acquire));
    frame.push(protocol_version);
    for (int index = 3; index >= 0; --index) {
        frame.push(byte_of(lease_ms, index));
    }
    frame.push(byte_of(name.size(), 1));
    frame.push(byte_of(name.size(), 0));
    for (const char letter : name) {
        frame.push(static_cast<std::uint8_t>(letter));
    }
    return frame;
}

std::array<std::byte, acquired_bytes> encode_acquired(fencing_token token) noexcept {
    std::array<std::byte, acquired_bytes> frame{static_cast<std::byte>(server_message::acquired)};
    for (std::size_t index = 0; index < 8; ++index) {
        frame[1 + index] = std::byte{byte_of(token.value, 7 - static_cast<int>(index))};
    }
    return frame;
}

server_frame_bytes encode_error(error_code code, std::string_view reason) {
    if (reason.size() > reason_bytes_max) {
        std::size_t cut = reason_bytes_max;
        while (cut > 0 && (static_cast<std::uint8_t>(reason[cut]) & 0xC0U) == 0x80U) {
            --cut;
        }
        reason = reason.substr(0, cut);
    }
    server_frame_bytes frame;
    frame.push(static_cast<std::uint8_t>(server_message::error));
    frame.push(static_cast<std::uint8_t>(code));
    frame.push(static_cast<std::uint8_t>(reason.size()));
    for (const char letter : reason) {
        frame.push(static_cast<std::uint8_t>(letter));
    }
    return frame;
}

std::size_t acquire_decoder::name_length() const noexcept {
    return read_big_endian(std::span{data_}.subspan(name_length_at, 2));
}

// The checks in the order that the protocol fixes, each as soon as its bytes are there.
std::optional<malformed> acquire_decoder::check_header_so_far() const {
    if (size_ == 1) {
        if (data_[0] == static_cast<std::uint8_t>(client_message::heartbeat)) {
            return refusal(error_code::first_message_not_acquire);
        }
        if (data_[0] != static_cast<std::uint8_t>(client_message::acquire)) {
            return unknown_type_refusal(data_[0]);
        }
    }
    if (size_ == version_at + 1 && data_[version_at] != protocol_version) {
        return refusal(error_code::unsupported_version);
    }
    if (size_ == name_length_at && read_big_endian(std::span{data_}.subspan(lease_at, 4)) == 0) {
        return refusal(error_code::lease_not_positive);
    }
    if (size_ == acquire_header_bytes) {
        if (name_length() == 0) {
            return refusal(error_code::empty_lock_name);
        }
        if (name_length() > lock_name_bytes_max) {
            return refusal(error_code::lock_name_too_long);
        }
    }
    return std::nullopt;
}

acquire_decoder::status acquire_decoder::feed(std::span<const std::byte> input, std::size_t& used) {
    used = 0;
    while (used < input.size()) {
        data_[size_++] = static_cast<std::uint8_t>(input[used++]);
        if (auto refused = check_header_so_far()) {
            error_ = std::move(*refused);
            return status::malformed;
        }
        if (size_ > acquire_header_bytes && size_ == acquire_header_bytes + name_length()) {
            const std::string_view name{reinterpret_cast<const char*>(&data_[acquire_header_bytes]),
                                        name_length()};
            if (!is_valid_utf8(name)) {
                error_ = refusal(error_code::lock_name_not_utf8);
                return status::malformed;
            }
            return status::complete;
        }
    }
    return status::need_more;
}

acquire_request acquire_decoder::take_request() {
    return {.lease_ms =
                static_cast<std::uint32_t>(read_big_endian(std::span{data_}.subspan(lease_at, 4))),
            .name = std::string{reinterpret_cast<const char*>(&data_[acquire_header_bytes]),
                                name_length()}};
}

std::optional<malformed> check_session_message(std::byte type) {
    if (type == heartbeat_frame[0]) {
        return std::nullopt;
    }
    if (type == static_cast<std::byte>(client_message::acquire)) {
        return refusal(error_code::duplicate_acquire);
    }
    return unknown_type_refusal(static_cast<std::uint8_t>(type));
}

std::optional<std::size_t> server_frame_decoder::frame_length() const noexcept {
    switch (static_cast<server_message>(data_[0])) {
        case server_message::waiting:
            return 1;
        case server_message::acquired:
            return acquired_bytes;
        case server_message::error:
            return size_ < error_header_bytes ? error_header_bytes + 1
                                              : error_header_bytes + data_[2];
    }
    return std::nullopt;
}

server_frame_decoder::status server_frame_decoder::feed(std::span<const std::byte> input,
                                                        std::size_t& used) {
    used = 0;
    while (used < input.size()) {
        data_[size_++] = static_cast<std::uint8_t>(input[used++]);
        const auto length = frame_length();
        if (!length) {
            return status::malformed;
        }
        if (size_ == *length) {
            return status::frame;
        }
    }
    return status::need_more;
}

server_frame server_frame_decoder::take_frame() {
    const std::size_t size = std::exchange(size_, 0);
    switch (static_cast<server_message>(data_[0])) {
        case server_message::waiting:
            return waiting{};
        case server_message::acquired:
            return acquired{.token = {read_big_endian(std::span{data_}.subspan(1, 8))}};
        case server_message::error:
            break;
    }
    return error{.code = static_cast<error_code>(data_[1]),
                 .reason = std::string{reinterpret_cast<const char*>(&data_[error_header_bytes]),
                                       size - error_header_bytes}};
}

}  // namespace monolock::protocol
