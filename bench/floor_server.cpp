// The floor: the least that a TCP server can spend on monolock's traffic. What the server costs
// above this is monolock's own; what lies below is the kernel's. The loop is floor/loop.hpp's; one
// receive for each event, since a receive that brings less than the buffer holds has emptied the
// socket, so that what comes later raises an edge of its own.
//
// It tells an ACQUIRE from a heartbeat by its first byte, which is all the protocol it knows: an
// ACQUIRE, however long, is answered with one ACQUIRED frame, anything else with one for each byte.
//
// With the argument `handover` it is the floor of another measurement: all connections stand in one
// queue, and when the first closes the next is sent an ACQUIRED frame.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <string_view>

#include "floor/constant_answer.hpp"
#include "floor/loop.hpp"
#include "protocol/frames.hpp"

namespace {

namespace floor = monolock::bench::floor;
namespace protocol = monolock::protocol;

using byte_view = std::span<const std::byte>;

// What arrived; nothing at the end of the stream and after an error.
byte_view receive(int connection, std::span<std::byte> into) {
    const auto received = ::recv(connection, into.data(), into.size(), 0);
    return into.first(received > 0 ? static_cast<std::size_t>(received) : 0);
}

// A peer that does not read is none of the floor's business: a partial write is a failure.
bool answer(int connection, byte_view bytes) {
    return ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
}

// An answer for each byte, and no state at all.
class byte_answerer {
public:
    void opened(int) noexcept {}

    void serve(int connection) {
        const auto input = receive(connection, input_);
        if (input.empty() || !answer(connection, answer_.to(input))) {
            ::close(connection);
        }
    }

private:
    std::array<std::byte, floor::input_bytes_max> input_{};
    floor::constant_answer answer_;
};

// One queue; the first of it is the owner.
class handover_answerer {
public:
    void opened(int) noexcept {}

    void serve(int connection) {
        if (receive(connection, input_).empty()) {
            leave(connection);
            return;
        }
        const bool first = queue_.empty();
        queue_.push_back(connection);
        answer(connection, first ? byte_view{acquired_} : byte_view{protocol::waiting_frame});
    }

private:
    void leave(int connection) {
        const bool owner = !queue_.empty() && queue_.front() == connection;
        if (owner) {
            queue_.pop_front();
            if (!queue_.empty()) {
                answer(queue_.front(), acquired_);
            }
        } else {
            std::erase(queue_, connection);  // not while the measurement runs
        }
        ::close(connection);
    }

    std::array<std::byte, floor::input_bytes_max> input_{};
    std::array<std::byte, protocol::acquired_bytes> acquired_ =
        protocol::encode_acquired(protocol::fencing_token{1});
    std::deque<int> queue_;
};

template <class Answerer>
[[noreturn]] void run() {
    static Answerer answerer;
    floor::run(answerer);
}

}  // namespace

int main(int argc, char** argv) {
    floor::raise_descriptor_limit();
    if (argc > 1 && std::string_view{argv[1]} == "handover") {
        run<handover_answerer>();
    }
    run<byte_answerer>();
}
