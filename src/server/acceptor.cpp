#include "server/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace monolock::server {

namespace {

// How many connections a shard takes before its sessions have their turn.
constexpr int batch_max = 16;

// How long to wait when descriptors have run out. Short enough that a claim is served well within a
// second of one becoming free, long enough to cost nothing.
constexpr std::chrono::milliseconds retry_after{100};

}  // namespace

acceptor::acceptor(loop& on, posix::descriptor listening, surroundings& around, logger& log,
                   handler on_connection)
    : listening_{on.get_executor(), listening.release()},
      retry_{on.get_executor()},
      around_{&around},
      log_{&log},
      on_connection_{std::move(on_connection)} {}

void acceptor::stop() {
    retry_.cancel();
    // Those for whom there is no slot come out of the reserve, one at a time: nobody accepts any
    // more, and they are let go at once.
    stopping_ = true;
    while (accept_one() == outcome::go_on) {
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
            case outcome::go_on:
                break;
            case outcome::nothing_waits:
                await();
                return;
            case outcome::try_later:
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
    descriptor_budget::slot slot = around_->budget.take();
    if (!slot && !stopping_) {
        ++around_->errors;
        return try_later("all connections that the descriptor limit allows are taken");
    }
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    posix::descriptor accepted{::accept4(listening_.native_handle(),
                                         reinterpret_cast<sockaddr*>(&from), &size,
                                         SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!accepted) {
        return outcome_of_error(errno);
    }
    const peer_address peer = peer_address::of(accepted.get(), from);
    on_connection_({.descriptor = std::move(accepted), .slot = std::move(slot)}, peer);
    return outcome::go_on;
}

acceptor::outcome acceptor::outcome_of_error(int error) {
    if (error == EAGAIN) {
        return outcome::nothing_waits;
    }
    ++around_->errors;
    switch (error) {
        // About the one connection that was in line, network errors that Linux passes on included.
        case ECONNABORTED:
        case EPROTO:
        case EINTR:
        case EPERM:
        case ENETDOWN:
        case ENETUNREACH:
        case ENOPROTOOPT:
        case EHOSTDOWN:
        case EHOSTUNREACH:
        case ENONET:
        case EOPNOTSUPP:
            return outcome::go_on;
        default:
            return try_later(std::generic_category().message(error));
    }
}

acceptor::outcome acceptor::try_later(std::string_view why) {
    log_->write_seldom(around_->trouble, telemetry::log_level::warn, "new connections have to wait",
                       {{.key = "reason", .value = why},
                        {.key = "accept_errors", .value = around_->errors.load()}});
    return outcome::try_later;
}

}  // namespace monolock::server
