#include <array>

#include "load/modes.hpp"
#include "protocol/frames.hpp"

namespace monolock::bench {

using protocol::server_message;

std::string lock_name(std::size_t serial) {
    auto digits = std::to_string(serial);
    if (digits.size() < 9) {
        digits.insert(0, 9 - digits.size(), '0');
    }
    return "bench/lock-" + digits;
}

std::string negotiated_with(const target& to) {
    return to.client ? own(to, 0, "bench/negotiated").negotiated() : std::string{};
}

connection claim(const target& to, std::size_t serial, const std::string& name) {
    connection made{to.server, serial, to.client};
    made.send(protocol::encode_acquire(lease_ms, name).bytes());
    return made;
}

connection own(const target& to, std::size_t serial, const std::string& name) {
    auto made = claim(to, serial, name);
    std::array<std::byte, protocol::acquired_bytes> frame{};
    made.receive_frame(frame, static_cast<std::byte>(server_message::acquired));
    return made;
}

connection queue_up(const target& to, std::size_t serial, const std::string& name) {
    auto made = claim(to, serial, name);
    std::array<std::byte, protocol::waiting_frame.size()> frame{};
    made.receive_frame(frame, static_cast<std::byte>(server_message::waiting));
    return made;
}

}  // namespace monolock::bench
