#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace monolock::server {

// Who is at the other end, small enough to keep with each session.
class peer_address {
public:
    peer_address() noexcept = default;

    // From what accept() returned. For a Unix socket the kernel is asked for the peer's process and
    // user, which it noted at connect.
    static peer_address of(int descriptor, const sockaddr_storage& from) noexcept;

    // "192.0.2.1:5000", "[2001:db8::1]:5000", "unix:pid=7,uid=1000". An IPv4-mapped address prints
    // as IPv4.
    [[nodiscard]] std::string to_string() const;

    // What prints as this text, or nothing.
    static std::optional<peer_address> parse(std::string_view text);

    friend bool operator==(const peer_address&, const peer_address&) = default;

private:
    enum class kind : std::uint8_t { unknown, ipv4, ipv6, local };

    std::array<unsigned char, 16> bytes_{};  // the address; of a local peer, pid and uid
    std::uint16_t port_ = 0;
    kind kind_ = kind::unknown;
};

}  // namespace monolock::server
