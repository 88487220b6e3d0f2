#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "protocol/error_code.hpp"
#include "protocol/fencing_token.hpp"
#include "protocol/lock_name.hpp"

namespace monolock::protocol {

// Frames of protocol version 1, both ways: encoders, and decoders that take any split of the bytes.
// Layout and order of checks are docs/protocol.md's; this is the only place that knows them.

inline constexpr std::uint8_t protocol_version = 1;

enum class client_message : std::uint8_t { acquire = 0x01, heartbeat = 0x02 };
enum class server_message : std::uint8_t { waiting = 0x11, acquired = 0x12, error = 0x13 };

inline constexpr std::size_t acquire_header_bytes = 8;  // type, version, lease_ms u32, name_len u16
inline constexpr std::size_t acquire_bytes_max = acquire_header_bytes + lock_name_bytes_max;
inline constexpr std::size_t acquired_bytes = 9;
inline constexpr std::size_t error_header_bytes = 3;
inline constexpr std::size_t reason_bytes_max = 255;
inline constexpr std::size_t server_frame_bytes_max = error_header_bytes + reason_bytes_max;

// A short frame, held by value. Size is at most Capacity.
template <std::size_t Capacity>
class frame_bytes {
public:
    void push(std::uint8_t byte) noexcept { data_[size_++] = static_cast<std::byte>(byte); }

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return std::span{data_}.first(size_);
    }

private:
    std::array<std::byte, Capacity> data_{};
    std::size_t size_ = 0;
};

using acquire_frame_bytes = frame_bytes<acquire_bytes_max>;
using server_frame_bytes = frame_bytes<server_frame_bytes_max>;

// The name must be a lock name (check_lock_name).
[[nodiscard]] acquire_frame_bytes encode_acquire(std::uint32_t lease_ms, std::string_view name);
inline constexpr std::array<std::byte, 1> heartbeat_frame{
    static_cast<std::byte>(client_message::heartbeat)};

inline constexpr std::array<std::byte, 1> waiting_frame{
    static_cast<std::byte>(server_message::waiting)};
[[nodiscard]] std::array<std::byte, acquired_bytes> encode_acquired(fencing_token token) noexcept;
// A reason longer than 255 bytes is cut at a character boundary.
[[nodiscard]] server_frame_bytes encode_error(error_code code, std::string_view reason);

// What an ACQUIRE asks for. lease_ms is at least 1; name is a lock name.
struct acquire_request {
    std::uint32_t lease_ms = 0;
    std::string name;
};

// Why bytes are refused, as the ERROR that answers them.
struct malformed {
    error_code code{};
    std::string reason;
};
// With the reason that goes with the code (docs/protocol.md, "Errors").
[[nodiscard]] malformed refusal(error_code code);

// Reads the first message of a connection. Stops at the earliest byte that settles the outcome, so
// that a wrong version or an overlong name is refused without waiting for the rest.
class acquire_decoder {
public:
    enum class status { need_more, complete, malformed };

    // Takes bytes until the outcome is settled and says how many it took in `used`. Bytes beyond
    // the ACQUIRE are not taken: they belong to the session. Not to be called again after complete
    // or malformed.
    [[nodiscard]] status feed(std::span<const std::byte> input, std::size_t& used);

    // After complete. The request is moved out.
    [[nodiscard]] acquire_request take_request();
    // After malformed.
    [[nodiscard]] const malformed& error() const noexcept { return error_; }

private:
    [[nodiscard]] std::optional<malformed> check_header_so_far() const;
    [[nodiscard]] std::size_t name_length() const noexcept;

    std::array<std::uint8_t, acquire_bytes_max> data_{};
    std::size_t size_ = 0;
    malformed error_;
};

// A message of an admitted session is one byte: nothing if it is a HEARTBEAT, else the refusal.
[[nodiscard]] std::optional<malformed> check_session_message(std::byte type);

struct waiting {
    friend bool operator==(const waiting&, const waiting&) = default;
};
struct acquired {
    fencing_token token;
    friend bool operator==(const acquired&, const acquired&) = default;
};
struct error {
    error_code code{};
    std::string reason;
    friend bool operator==(const error&, const error&) = default;
};
using server_frame = std::variant<waiting, acquired, error>;

// Reads the server's frames, one at a time.
class server_frame_decoder {
public:
    enum class status { need_more, frame, malformed };

    // Takes bytes up to the end of the next frame and says how many it took in `used`; after
    // `frame` call it again with the rest. An unknown type byte is malformed, and final.
    [[nodiscard]] status feed(std::span<const std::byte> input, std::size_t& used);

    // After frame; moved out.
    [[nodiscard]] server_frame take_frame();
    // After malformed: the byte that no frame starts with.
    [[nodiscard]] std::uint8_t unknown_type() const noexcept { return data_[0]; }

private:
    // Bytes that the frame has in all, as far as the bytes so far tell; nothing for an unknown
    // type.
    [[nodiscard]] std::optional<std::size_t> frame_length() const noexcept;

    std::array<std::uint8_t, server_frame_bytes_max> data_{};
    std::size_t size_ = 0;
};

}  // namespace monolock::protocol
