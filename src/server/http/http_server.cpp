#include "server/http/http_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <exception>
#include <utility>

namespace monolock::server::http {

namespace {

// A request is answered within milliseconds; whoever takes longer is a slow reader, and may have to
// make room.
constexpr std::chrono::seconds undisturbed{1};
// The request of a connection that is new, or was just answered, may be on its way.
constexpr std::chrono::milliseconds settling{250};
constexpr std::chrono::milliseconds room_interval{5};
// After an accept that failed for want of descriptors or memory.
constexpr std::chrono::milliseconds retry_after{100};

// Nothing in the accepting throws but the want of memory, which ends the process as elsewhere.
void rethrow(const std::exception_ptr& failed) {
    if (failed) {
        std::rethrow_exception(failed);
    }
}

void log_failure(logger& log, const std::exception_ptr& failed) {
    try {
        rethrow(failed);
    } catch (const std::exception& error) {
        log.write(telemetry::log_level::error, "a response broke off",
                  {{.key = "reason", .value = std::string_view{error.what()}}});
    }
}

}  // namespace

void http_server::listen(posix::descriptor listening) {
    auto made = std::make_unique<watched_descriptor>(loop_->get_executor(), listening.release());
    watched_descriptor* const one = made.get();
    listening_.push_back(std::move(made));
    boost::asio::co_spawn(*loop_, accept_all(one), rethrow);
}

task<void> http_server::accept_all(watched_descriptor* listening) {
    for (;;) {
        const auto [stopped] =
            co_await listening->async_wait(watched_descriptor::wait_read, as_result);
        if (stopped) {
            co_return;
        }
        const auto patient_until = std::chrono::steady_clock::now() + undisturbed;
        while (!make_room(patient_until)) {
            co_await pause(room_interval);
        }
        posix::descriptor accepted{
            ::accept4(listening->native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
        if (accepted) {
            start(std::move(accepted));
        } else if (errno != EAGAIN) {
            co_await pause(retry_after);
        }
    }
}

task<void> http_server::pause(std::chrono::milliseconds time) {
    loop_timer timer{*loop_, time};
    co_await timer.async_wait(as_result);
}

bool http_server::make_room(std::chrono::steady_clock::time_point patient_until) {
    if (connections_.size() < service_.bounds.connections_max) {
        return true;
    }
    const auto now = std::chrono::steady_clock::now();
    const auto gives_way_before = [](connection& left, connection& right) {
        return left.is_idle() != right.is_idle() ? left.is_idle() : left.since() < right.since();
    };
    connection& chosen =
        *std::min_element(connections_.begin(), connections_.end(), gives_way_before);
    const std::chrono::milliseconds left_alone = chosen.is_idle() ? settling : undisturbed;
    // Those who ask one thing after another are never long at it; so patience has an end.
    if (chosen.since() + left_alone > now && now < patient_until) {
        return false;
    }
    if (chosen.is_idle()) {
        chosen.close();  // nothing is on its way to it, and a browser that is told goes elsewhere
    } else {
        chosen.abort();
    }
    return true;
}

void http_server::start(posix::descriptor accepted) {
    sockaddr address{};
    socklen_t size = sizeof address;
    ::getsockname(accepted.get(), &address, &size);
    stream_socket socket{*loop_};
    boost::system::error_code refused;  // epoll has a limit of its own
    socket.assign({address.sa_family, 0}, accepted.get(), refused);
    if (refused) {
        return;
    }
    static_cast<void>(accepted.release());
    const auto made = std::make_shared<connection>(std::move(socket), service_);
    connections_.push_back(*made);
    boost::asio::co_spawn(*loop_, made->run(),
                          [made, log = service_.log](const std::exception_ptr& failed) {
                              made->abort();
                              log_failure(*log, failed);
                          });
}

}  // namespace monolock::server::http
