// A service on Boost.Asio that runs on several machines: each answers its clients all the time, and
// one of them also does what only one may do.
//
//     service SERVER PORT [LEASE_MS]
//
// Whoever connects to PORT is told what this one is. SIGTERM ends it in good order.

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include <monolock/asio.hpp>

namespace {

namespace net = boost::asio;
using namespace std::chrono_literals;
using boost::system::system_error;

class service {
public:
    service(net::io_context& io, const std::string& server, std::chrono::milliseconds lease)
        : locks_{io, {.address = server}}, lease_{lease} {}

    // Does the duty whenever it is this one's turn, until it is cancelled.
    net::awaitable<void> take_turns() {
        while (true) {
            try {
                // Waits in the queue without a thread, and tries again while the server is away.
                co_await with_lock(
                    locks_, "service/example", lease_, {.retry = true},
                    [this](const monolock::asio::lock& held) { return do_duty(held); });
            } catch (const monolock::error& failed) {
                state_ = "standby";
                std::cerr << failed.what() << std::endl;
                if (failed.at() != monolock::stage::held) {
                    throw;  // refused for good: not permitted, or no such server
                }
                // Lost while it was on duty: a new turn is a new claim.
            }
        }
    }

    net::awaitable<void> answer_all(net::ip::tcp::acceptor& on) {
        while (true) {
            auto client = co_await on.async_accept(net::use_awaitable);
            co_spawn(on.get_executor(), answer(std::move(client)), net::detached);
        }
    }

private:
    // Cancelled the moment the lock is lost: the awaited timer or step then throws.
    net::awaitable<void> do_duty(const monolock::asio::lock& held) {
        state_ = "on duty, token " + std::to_string(held.token());
        std::cout << state_ << std::endl;
        net::steady_timer pause{co_await net::this_coro::executor};
        while (true) {
            // What computes or blocks goes to a pool. On the io_context's own thread it would hold
            // up the heartbeats, and after 0.8 x lease the lock would be lost.
            // Without a slot, so that a loss lets it end and is noticed here: Asio 1.26 hands a
            // cancellation to another thread by a pointer that may dangle by then.
            co_await net::co_spawn(
                pool_, compute(held.token()),
                net::bind_cancellation_slot(net::cancellation_slot{}, net::use_awaitable));
            pause.expires_after(100ms);
            co_await pause.async_wait(net::use_awaitable);
        }
    }

    // Gives its token to whatever it writes to (docs/fencing.md): the pool may be at it a moment
    // longer than the lock is held.
    static net::awaitable<void> compute(std::uint64_t /*token*/) { co_return; }

    net::awaitable<void> answer(net::ip::tcp::socket client) {
        // A copy: it may change while the client takes it.
        const std::string line = state_ + "\n";
        boost::system::error_code gone;
        co_await net::async_write(client, net::buffer(line),
                                  net::redirect_error(net::use_awaitable, gone));
    }

    monolock::asio::client locks_;
    std::chrono::milliseconds lease_;
    std::string state_ = "standby";
    net::thread_pool pool_{1};
};

int run(const std::string& server, std::uint16_t port, std::chrono::milliseconds lease) {
    net::io_context io{1};
    service one{io, server, lease};
    net::ip::tcp::acceptor listener{io, {net::ip::address_v4::loopback(), port}};
    net::cancellation_signal stop;
    int status = 0;

    net::co_spawn(io, one.answer_all(listener), net::detached);
    net::co_spawn(io, one.take_turns(),
                  net::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr& why) {
                      // Only now is the lock given back, whatever the duty was at.
                      try {
                          std::rethrow_exception(why);
                      } catch (const system_error& cancelled) {
                          status = cancelled.code() == net::error::operation_aborted ? 0 : 1;
                      } catch (const std::exception&) {
                          status = 1;
                      }
                      io.stop();
                  }));
    net::signal_set signals{io, SIGTERM, SIGINT};
    signals.async_wait(
        [&](boost::system::error_code, int) { stop.emit(net::cancellation_type::terminal); });
    std::cout << "listening on " << listener.local_endpoint().port() << std::endl;
    io.run();
    return status;
}

// A whole word as a number that the type can hold, or false.
template <class Number>
bool read_number(std::string_view word, Number& into) {
    const char* const end = word.data() + word.size();
    const auto [rest, wrong] = std::from_chars(word.data(), end, into);
    return wrong == std::errc{} && rest == end;
}

}  // namespace

int main(int count, char** words) {
    std::uint16_t port = 0;
    std::uint32_t lease_ms = 10'000;
    if (count < 3 || !read_number(words[2], port) ||
        (count > 3 && !read_number(words[3], lease_ms))) {
        std::cerr << "usage: " << words[0] << " SERVER PORT [LEASE_MS]" << std::endl;
        return 2;
    }
    try {
        return run(words[1], port, std::chrono::milliseconds{lease_ms});
    } catch (const std::exception& failed) {
        std::cerr << words[0] << ": " << failed.what() << std::endl;
        return 1;
    }
}
