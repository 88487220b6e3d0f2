#include "server/lingering_close.hpp"

#include <array>

namespace monolock::server {

bool lingering_close::finish_at_once() {
    socket_.shutdown_send();
    if (discard_input()) {
        close();
        return true;
    }
    return false;
}

void lingering_close::on_readable() {
    if (discard_input()) {
        close();
    } else {
        wait();
    }
}

void lingering_close::close() noexcept {
    unlink();
    socket_.close();
}

// A bounded piece a turn: a peer that floods waits for its turn like everybody.
bool lingering_close::discard_input() {
    std::array<std::byte, 16 * 1024> input;  // NOLINT: only written to
    const core::receive_result got = socket_.receive(input);
    if (got.status != core::receive_status::bytes) {
        return got.status != core::receive_status::nothing;
    }
    discarded_ += got.count;
    return discarded_ > discard_bytes_max;
}

}  // namespace monolock::server
