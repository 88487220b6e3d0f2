#include "server/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace monolock::server {

namespace {

// How many connections a shard takes before its sessions have their turn.
constexpr int batch_max = 16;

// How long to wait when descriptors have run out. Short enough that a claim is served well within a
// second of one becoming free, long enough to cost nothing.
constexpr std::chrono::milliseconds retry_after{100};

}  // namespace

acceptor::acceptor(loop& on, posix::descriptor listening, descriptor_budget& budget, logger& log,
                   handler on_connection)
    : listening_{on.get_executor(), listening.release()},
      retry_{on.get_executor()},
      budget_{&budget},
      log_{&log},
      on_connection_{std::move(on_connection)} {}

void acceptor::stop() {
    retry_.cancel();
    while (accept_one() == outcome::accepted) {
    }
    boost::system::error_code ignored;
    listening_.close(ignored);
}

void acceptor::await() {
    listening_.async_wait(watched_descriptor::wait_read,
                          [this](const boost::system::error_code& stopped) {
                              if (!stopped && listening_.is_open()) {
                                  turn();
                              }
                          });
}

void acceptor::turn() {
    for (int taken = 0; taken < batch_max; ++taken) {
        switch (accept_one()) {
            case outcome::accepted:
                break;
            case outcome::nothing_waits:
                await();
                return;
            case outcome::exhausted:
                pause();
                return;
        }
    }
    await();
}

void acceptor::pause() {
    retry_.expires_after(retry_after);
    retry_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped && listening_.is_open()) {
            turn();
        }
    });
}

acceptor::outcome acceptor::accept_one() {
    descriptor_budget::slot slot = budget_->take();
    if (!slot) {
        return out_of_descriptors("all connections that the descriptor limit allows are taken");
    }
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    posix::descriptor accepted{::accept4(listening_.native_handle(),
                                         reinterpret_cast<sockaddr*>(&from), &size,
                                         SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (accepted) {
        const peer_address peer = peer_address::of(accepted.get(), from);
        on_connection_({.descriptor = std::move(accepted), .slot = std::move(slot)}, peer);
        return outcome::accepted;
    }
    switch (errno) {
        case EAGAIN:
            return outcome::nothing_waits;
        case EMFILE:
            return out_of_descriptors("the process has no free descriptor");
        case ENFILE:
            return out_of_descriptors("the system has no free descriptor");
        case ENOBUFS:
        case ENOMEM:
            return out_of_descriptors("the system has no memory for a socket");
        default:
            // ECONNABORTED, EPROTO and the network errors that Linux passes on are about the one
            // connection that was in line; EINTR is about nothing.
            ++errors_;
            return outcome::accepted;
    }
}

acceptor::outcome acceptor::out_of_descriptors(const char* why) {
    ++errors_;
    log_->write_seldom(
        telemetry::log_level::warn, "new connections have to wait",
        {{.key = "reason", .value = why}, {.key = "accept_errors", .value = errors_}});
    return outcome::exhausted;
}

}  // namespace monolock::server
