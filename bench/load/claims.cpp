#include <array>
#include <cstdio>

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

unique_fd claim(const endpoint& server, std::size_t serial, const std::string& name) {
    auto fd = connect_to(server, serial);
    send_all(fd.get(), protocol::encode_acquire(lease_ms, name).bytes());
    return fd;
}

unique_fd own(const endpoint& server, std::size_t serial, const std::string& name) {
    auto fd = claim(server, serial, name);
    std::array<std::byte, protocol::acquired_bytes> frame{};
    receive_frame(fd.get(), frame, static_cast<std::byte>(server_message::acquired));
    return fd;
}

unique_fd queue_up(const endpoint& server, std::size_t serial, const std::string& name) {
    auto fd = claim(server, serial, name);
    std::array<std::byte, protocol::waiting_frame.size()> frame{};
    receive_frame(fd.get(), frame, static_cast<std::byte>(server_message::waiting));
    return fd;
}

}  // namespace monolock::bench
