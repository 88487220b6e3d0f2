#include "server/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace monolock::server {

namespace {

// How long to wait when descriptors have run out. Short enough that a claim is served well within a
// second of one becoming free, long enough to cost nothing.
constexpr std::chrono::milliseconds retry_after{100};

}  // namespace

acceptor::acceptor(shard_loop& on, posix::descriptor listening, surroundings& around, logger& log,
                   handler on_connection)
    : loop_{&on},
      listening_{std::move(listening)},
      retry_{on, [this] { resume(); }},
      turn_end_{on, [this] { use_what_came_back(); }},
      around_{&around},
      log_{&log},
      on_connection_{std::move(on_connection)} {}

void acceptor::start() {
    resume();
    turn_end_.arm();
}

bool acceptor::listen_again() {
    watch_ = loop_->connections().add_listening(listening_.get(), *this);
    return watch_ != nullptr;
}

// Other shards have the socket open, so closing this descriptor would not take it out of the set.
void acceptor::stop_watching() noexcept {
    if (watch_) {
        watch_->let_go();
        watch_.reset();
    }
}

void acceptor::stop() {
    retry_.disarm();
    turn_end_.disarm();
    // Those for whom there is no slot come out of the reserve, one at a time: nobody accepts any
    // more, and they are let go at once.
    stopping_ = true;
    while (accept_one() == outcome::go_on) {
    }
    stop_watching();
    listening_.reset();
}

// One connection for each readiness, because another accept only to hear that there is no more
// would cost a single connection 9 %. In a rush, when they wait turn after turn, more and more.
void acceptor::on_readable() {
    const std::uint64_t turn = loop_->connections().turns();
    pace_.begin_turn(turn);
    for (int taken = 0; taken < pace_.allowance(); ++taken) {
        switch (accept_one()) {
            case outcome::go_on:
                break;
            case outcome::nothing_waits:
                pace_.found_less();
                return;
            case outcome::try_later:
                pause();
                return;
        }
    }
}

// The socket stays readable, so it is not watched meanwhile.
void acceptor::pause() {
    stop_watching();
    retry_.arm(std::chrono::steady_clock::now() + retry_after);
}

void acceptor::resume() {
    retry_.disarm();
    if (!listen_again()) {
        static_cast<void>(try_later("the system refuses to watch the listening socket"));
        pause();
    }
}

// A slot that this turn gave back is used at once. Were it left until the retry, a backlog of
// clients that had given up meanwhile would move by a few for each retry, and who stands behind
// them would give up in turn. It is for any shard to do so: the one that is in a pause learns
// nothing of other shards' slots, and the kernel tells no second one of who has been waiting
// before.
void acceptor::use_what_came_back() {
    if (!around_->slot_wanted.load(std::memory_order_relaxed) || !around_->budget.has_room()) {
        return;
    }
    switch (accept_one()) {
        case outcome::go_on:
        case outcome::nothing_waits:
            if (!watch_) {
                resume();
            }
            return;
        case outcome::try_later:
            pause();
            return;
    }
}

acceptor::outcome acceptor::accept_one() {
    descriptor_budget::slot slot = around_->budget.take();
    if (!slot && !stopping_) {
        ++around_->errors;
        around_->slot_wanted.store(true, std::memory_order_relaxed);
        return try_later("all connections that the descriptor limit allows are taken");
    }
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    posix::descriptor accepted{::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from),
                                         &size, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (!accepted) {
        return outcome_of_error(errno);
    }
    const peer_address peer = peer_address::of(accepted.get(), from);
    on_connection_({.descriptor = std::move(accepted),
                    .slot = std::move(slot),
                    .breaks_off = from.ss_family == AF_UNIX},
                   peer);
    return outcome::go_on;
}

acceptor::outcome acceptor::outcome_of_error(int error) {
    if (error == EAGAIN) {
        if (around_->slot_wanted.load(std::memory_order_relaxed)) {
            around_->slot_wanted.store(false, std::memory_order_relaxed);
        }
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
