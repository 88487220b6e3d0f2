// The modes of the load generator that keep many clients: hold and storm.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "load/crowd.hpp"
#include "load/modes.hpp"

namespace monolock::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Standard input as a row of commands: a line asks for figures, the end for the end.
class commands {
public:
    enum class word { nothing, line, end };

    // Never waits. Looks every 10 ms at most, since the caller asks after each heartbeat.
    [[nodiscard]] word take() {
        if (lines_ == 0 && !ended_ && clock::now() >= next_look_) {
            look();
            next_look_ = clock::now() + 10ms;
        }
        if (lines_ > 0) {
            --lines_;
            return word::line;
        }
        return ended_ ? word::end : word::nothing;
    }

private:
    void look() {
        pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
        if (::poll(&wait, 1, 0) <= 0) {
            return;
        }
        std::array<char, 64> input{};
        const auto count = ::read(STDIN_FILENO, input.data(), input.size());
        for (ssize_t i = 0; i < count; ++i) {
            lines_ += input[static_cast<std::size_t>(i)] == '\n' ? 1U : 0U;
        }
        ended_ = count <= 0;
    }

    std::size_t lines_ = 0;
    bool ended_ = false;
    clock::time_point next_look_;
};

double microseconds(nanoseconds time) {
    return std::chrono::duration<double, std::micro>(time).count();
}

double seconds(nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

void print(const char* name, latencies& values) {
    std::printf("\"%s\": {\"count\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}, ",
                name, values.count(), microseconds(values.percentile(0.5)),
                microseconds(values.percentile(0.99)), microseconds(values.percentile(1.0)));
}

void print(const char* name, const endings& how) {
    std::printf(
        "\"%s\": {\"refused\": %zu, \"closed\": %zu, \"told\": %zu, \"broken\": %zu, "
        "\"timed_out\": %zu}, ",
        name, how.refused, how.closed, how.told, how.broken, how.timed_out);
}

// One line, written at once: whoever reads waits for it.
void print(const char* event, const crowd& clients, crowd_figures figures, nanoseconds elapsed,
           nanoseconds server_cpu) {
    std::printf("{\"event\": \"%s\", \"clients\": %zu, \"owning\": %zu, \"seconds\": %.3f, ", event,
                clients.size(), clients.owning(), seconds(elapsed));
    print("grants", figures.grants);
    print("heartbeats", figures.heartbeats);
    print("generator_late", figures.lags);
    print("failed", figures.failed);
    print("lost", figures.lost);
    std::printf("\"attempts\": %zu, \"server_cpu_seconds\": %.4f}\n", figures.attempts,
                seconds(server_cpu));
    std::fflush(stdout);
}

}  // namespace

void run_hold(const target& to, const crowd_options& options, nanoseconds duration) {
    crowd clients(to, options);
    commands input;
    auto cpu = to.process.cpu_time();
    const auto report = [&](const char* event) {
        auto figures = clients.take_figures();
        const auto elapsed = clock::now() - figures.since;
        const auto cpu_before = std::exchange(cpu, to.process.cpu_time());
        print(event, clients, std::move(figures), elapsed, cpu - cpu_before);
    };
    clients.start_in_turn();
    report("open");

    const auto end = clock::now() + duration;
    auto word = commands::word::nothing;
    while (word != commands::word::end && clock::now() < end) {
        clients.run_until([&] {
            word = input.take();
            return word != commands::word::nothing || clock::now() >= end;
        });
        report("held");
    }
}

void run_storm(const target& to, const crowd_options& options, nanoseconds duration) {
    crowd clients(to, options);
    commands input;
    auto started = clock::now();
    auto cpu = to.process.cpu_time();
    clients.start_all();
    while (true) {
        const auto end = started + duration;
        clients.run_until([&] { return clients.all_own() || clock::now() >= end; });
        const auto now = clock::now();
        const auto cpu_now = clients.all_own() ? to.process.cpu_time() : cpu;
        print(clients.all_own() ? "all" : "late", clients, clients.take_figures(), now - started,
              cpu_now - cpu);
        if (!clients.all_own()) {
            throw measurement_error("not every client had its lock in time");
        }
        bool ended = false;
        clients.run_until([&] {
            ended = input.take() == commands::word::end;
            return ended || !clients.all_own();
        });
        if (ended) {
            return;
        }
        started = clock::now();
    }
}

}  // namespace monolock::bench
