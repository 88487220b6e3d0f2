// The floor on io_uring instead of epoll: could a server on it be cheaper (docs/decisions/0019)? It
// answers as floor_server does and knows as little. A connection is one receive request that stays
// armed and takes its memory from a ring of buffers that all connections share; the listening
// socket is one accept request that stays armed.
//
// All answers of a turn, and all closes, are submitted by the call that waits for the next turn,
// and the kernel does the work that arrivals bring only then. That is the cheapest of what was
// tried; these words on the command line show the rest, and all others are ignored:
//
//   call    each answer is a send() of its own, as readiness needs it
//   coop    the kernel does its work at the thread's next system call, whichever it is
//   plain   the kernel interrupts the thread for its work
//   fixed   connections are entries of the ring's own table instead of descriptors; never with call

#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "floor/constant_answer.hpp"
#include "floor/loop.hpp"

namespace {

namespace floor = monolock::bench::floor;

constexpr unsigned submissions_max = 4096;
constexpr unsigned completions_max = 4 * submissions_max;
constexpr unsigned input_buffers = 1024;  // a power of two
constexpr std::size_t input_bytes = 512;  // as the server takes in one receive
constexpr int buffer_group = 0;
constexpr std::size_t turn_max = 256;
constexpr unsigned connections_max = 16'384;

struct settings {
    bool batch = true;
    bool fixed = false;
    unsigned setup = IORING_SETUP_DEFER_TASKRUN;
};

// liburing reports errors as negative results, not in errno.
int check_ring(int result, const char* what) {
    if (result < 0) {
        errno = -result;
        floor::die(what);
    }
    return result;
}

class uring_floor {
public:
    explicit uring_floor(const settings& wishes);
    [[noreturn]] void run();

private:
    enum class operation : std::uint64_t { accept, receive, send, close };

    static std::uint64_t tag(operation what, int connection) {
        return static_cast<std::uint64_t>(what) << 32U | static_cast<std::uint32_t>(connection);
    }
    io_uring_sqe& submission();
    void arm_accept();
    void arm_receive(int connection);
    void give_buffer_back(unsigned index);
    void take(const io_uring_cqe& what);
    void serve(int connection, const io_uring_cqe& what);
    void answer(int connection, std::span<const std::byte> bytes);
    void close(int connection);

    settings wishes_;
    io_uring ring_{};
    io_uring_buf_ring* buffers_ = nullptr;
    std::vector<std::array<std::byte, input_bytes>> memory_;
    std::array<io_uring_cqe*, turn_max> found_{};
    int listener_;
    floor::constant_answer answer_;
};

uring_floor::uring_floor(const settings& wishes)
    : wishes_{wishes}, memory_(input_buffers), listener_{floor::listen_on_loopback()} {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_CQSIZE | wishes.setup;
    params.cq_entries = completions_max;
    check_ring(io_uring_queue_init_params(submissions_max, &ring_, &params), "io_uring_setup");
    check_ring(io_uring_register_ring_fd(&ring_), "io_uring_register_ring_fd");
    if (wishes.fixed) {
        check_ring(io_uring_register_files_sparse(&ring_, connections_max), "register_files");
    }
    void* memory = nullptr;
    if (::posix_memalign(&memory, 4096, input_buffers * sizeof(io_uring_buf)) != 0) {
        floor::die("posix_memalign");
    }
    buffers_ = static_cast<io_uring_buf_ring*>(memory);
    io_uring_buf_reg group{};
    group.ring_addr = reinterpret_cast<std::uintptr_t>(buffers_);
    group.ring_entries = input_buffers;
    group.bgid = buffer_group;
    check_ring(io_uring_register_buf_ring(&ring_, &group, 0), "io_uring_register_buf_ring");
    io_uring_buf_ring_init(buffers_);
    for (unsigned index = 0; index < input_buffers; ++index) {
        give_buffer_back(index);
    }
}

io_uring_sqe& uring_floor::submission() {
    io_uring_sqe* next = io_uring_get_sqe(&ring_);
    while (next == nullptr) {
        check_ring(io_uring_submit(&ring_), "io_uring_submit");
        next = io_uring_get_sqe(&ring_);
    }
    return *next;
}

void uring_floor::arm_accept() {
    io_uring_sqe& next = submission();
    if (wishes_.fixed) {
        io_uring_prep_multishot_accept_direct(&next, listener_, nullptr, nullptr, 0);
    } else {
        io_uring_prep_multishot_accept(&next, listener_, nullptr, nullptr,
                                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    io_uring_sqe_set_data64(&next, tag(operation::accept, 0));
}

void uring_floor::arm_receive(int connection) {
    io_uring_sqe& next = submission();
    io_uring_prep_recv_multishot(&next, connection, nullptr, 0, 0);
    next.flags |= IOSQE_BUFFER_SELECT | (wishes_.fixed ? IOSQE_FIXED_FILE : 0U);
    next.buf_group = buffer_group;
    io_uring_sqe_set_data64(&next, tag(operation::receive, connection));
}

void uring_floor::give_buffer_back(unsigned index) {
    io_uring_buf_ring_add(buffers_, memory_[index].data(), input_bytes,
                          static_cast<unsigned short>(index), io_uring_buf_ring_mask(input_buffers),
                          0);
    io_uring_buf_ring_advance(buffers_, 1);
}

void uring_floor::run() {
    arm_accept();
    for (;;) {
        const int did = io_uring_submit_and_wait(&ring_, 1);
        if (did < 0 && did != -EINTR) {
            check_ring(did, "io_uring_enter");
        }
        const unsigned count =
            io_uring_peek_batch_cqe(&ring_, found_.data(), static_cast<unsigned>(found_.size()));
        for (const io_uring_cqe* each : std::span{found_}.first(count)) {
            take(*each);
        }
        io_uring_cq_advance(&ring_, count);
    }
}

void uring_floor::take(const io_uring_cqe& what) {
    const auto connection = static_cast<int>(static_cast<std::uint32_t>(what.user_data));
    switch (static_cast<operation>(what.user_data >> 32U)) {
        case operation::accept:
            if (what.res >= 0) {
                arm_receive(what.res);
            }
            if ((what.flags & IORING_CQE_F_MORE) == 0) {
                arm_accept();
            }
            return;
        case operation::receive:
            serve(connection, what);
            return;
        case operation::send:  // reported only if it failed
            if (what.res != -EPIPE && what.res != -ECONNRESET) {
                check_ring(what.res, "send");
            }
            return;
        case operation::close:
            check_ring(what.res, "close");
            return;
    }
}

void uring_floor::serve(int connection, const io_uring_cqe& what) {
    if (what.res == -ENOBUFS) {
        arm_receive(connection);
        return;
    }
    if (what.res > 0) {
        const unsigned index = what.flags >> static_cast<unsigned>(IORING_CQE_BUFFER_SHIFT);
        const auto input = std::span{memory_[index]}.first(static_cast<std::size_t>(what.res));
        answer(connection, answer_.to(input));
        give_buffer_back(index);
    }
    if ((what.flags & IORING_CQE_F_MORE) == 0) {
        if (what.res > 0) {
            arm_receive(connection);
        } else {
            close(connection);
        }
    }
}

void uring_floor::answer(int connection, std::span<const std::byte> bytes) {
    if (!wishes_.batch) {
        static_cast<void>(::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL));
        return;
    }
    io_uring_sqe& next = submission();
    io_uring_prep_send(&next, connection, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    next.flags |= IOSQE_CQE_SKIP_SUCCESS | (wishes_.fixed ? IOSQE_FIXED_FILE : 0U);
    io_uring_sqe_set_data64(&next, tag(operation::send, connection));
}

void uring_floor::close(int connection) {
    if (!wishes_.batch) {
        ::close(connection);
        return;
    }
    io_uring_sqe& next = submission();
    if (wishes_.fixed) {
        io_uring_prep_close_direct(&next, static_cast<unsigned>(connection));
    } else {
        io_uring_prep_close(&next, connection);
    }
    next.flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(&next, tag(operation::close, connection));
}

settings parse(std::span<char*> arguments) {
    settings wishes;
    for (const std::string_view word : arguments) {
        if (word == "call") {
            wishes.batch = false;
        } else if (word == "plain") {
            wishes.setup = 0;
        } else if (word == "coop") {
            wishes.setup = IORING_SETUP_COOP_TASKRUN;
        } else if (word == "fixed") {
            wishes.fixed = true;
        }
    }
    wishes.batch = wishes.batch || wishes.fixed;
    return wishes;
}

}  // namespace

int main(int argc, char** argv) {
    floor::raise_descriptor_limit();
    static uring_floor server{parse(std::span{argv, static_cast<std::size_t>(argc)}.subspan(1))};
    server.run();
}
