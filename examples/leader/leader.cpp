// Leader election: of all that run this one leads, and another takes over when it goes.
//
//     leader SERVER NAME [LEASE_MS]
//
// Prints what it becomes. SIGTERM steps down and ends it.

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <monolock/monolock.hpp>

namespace {

using namespace std::chrono_literals;

constexpr auto period = 100ms;     // of a leader's duty
constexpr auto duty_takes = 20ms;  // at the most, as far as anybody can promise that

// What only the leader may do. Give the token to whatever it writes to: that refuses an older
// leader which does not know yet that it is none (docs/fencing.md).
void do_duty(const std::string& me, std::uint64_t token) {
    std::cout << me << " leads " << token << std::endl;
}

// Sleeps, and wakes up at once when it is asked to stop.
void pause(std::chrono::nanoseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock held{mutex};
    never.wait_for(held, stop, time, [] { return false; });
}

void lead(const monolock::lock& held, const std::string& me, const std::stop_token& stop) {
    // One token for both reasons to end: the lock is lost, or the program is asked to.
    std::stop_source over;
    const auto end = [&over] { over.request_stop(); };
    const std::stop_callback on_loss{held.loss_token(), end};
    const std::stop_callback on_stop{stop, end};
    while (!over.stop_requested()) {
        // Confirmed for as long as the step takes? If the server falls silent, this says no before
        // the loss is certain.
        if (monolock::boot_clock::now() + duty_takes < held.confirmed_until()) {
            do_duty(me, held.token());
        }
        pause(period, over.get_token());
    }
}

void run(monolock::client& locks, const std::string& me, std::chrono::milliseconds lease,
         const std::stop_token& stop) {
    while (true) {
        std::cout << me << " stands" << std::endl;
        // Waits in line, and comes back by itself after a restart of the server.
        auto held = locks.acquire_retry("leader/example", lease, stop);
        std::cout << me << " elected " << held.token() << std::endl;
        lead(held, me, stop);
        // Given back at once, so that the next one leads without waiting for a lease.
        std::error_code lost;
        held.release(lost);
        std::cout << me << " steps down: " << (lost ? lost.message() : "asked to") << std::endl;
        if (!lost) {
            return;
        }
    }
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
    std::uint32_t lease_ms = 10'000;
    if (count < 3 || (count > 3 && !read_number(words[3], lease_ms))) {
        std::cerr << "usage: " << words[0] << " SERVER NAME [LEASE_MS]" << std::endl;
        return 2;
    }
    // How long nobody leads after a leader froze. One that crashes is followed at once.
    const std::chrono::milliseconds lease{lease_ms};

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    std::stop_source stop;
    std::thread{[ends, stop]() mutable {
        int which = 0;
        sigwait(&ends, &which);
        stop.request_stop();
    }}.detach();

    try {
        monolock::client locks{{.address = words[1]}};
        run(locks, words[2], lease, stop.get_token());
        return 0;
    } catch (const monolock::error& failed) {
        if (failed.code() == monolock::errc::stopped) {
            return 0;  // asked to end while it stood in line
        }
        std::cerr << words[0] << ": " << failed.what() << std::endl;
    } catch (const std::exception& failed) {
        std::cerr << words[0] << ": " << failed.what() << std::endl;
    }
    return 1;
}
