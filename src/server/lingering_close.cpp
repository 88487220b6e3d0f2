#include "server/lingering_close.hpp"

#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace monolock::server {

bool lingering_close::finish_at_once() {
    socket_.shutdown_send();
    if (discard_input()) {
        close();
        return true;
    }
    return false;
}

void lingering_close::wait() {
    socket_.wait_readable([self = boost::intrusive_ptr<lingering_close>{this}](
                              const boost::system::error_code& stopped) {
        if (stopped || !self->socket_.is_open()) {
            return;
        }
        if (self->discard_input()) {
            self->close();
        } else {
            self->wait();
        }
    });
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
