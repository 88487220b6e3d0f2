#include "peers/driver.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

namespace monolock::bench::peers {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct command_line {
    std::string address;
    pid_t pid = 0;
    std::string cgroup;
    double seconds = 2;
    double warm_up_seconds = 0.3;
    std::size_t concurrent = 1;
    std::size_t connections = 1000;
    std::size_t outstanding = 64;
    std::size_t waiters = 64;
    std::size_t rounds = 1000;
    std::vector<std::size_t> sizes{100, 1000};
    // Redis shrinks a buffer once it was unused for two seconds, and again after five.
    double settle_seconds = 6;
};

struct target {
    std::string host;
    int port = 0;
    client_maker make = nullptr;
    account spent;

    [[nodiscard]] std::unique_ptr<client> connect() const { return make(host, port); }
};

// Runs `work` with each number below `count` in a thread of its own, and throws what one threw.
void run_side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::mutex guard;
    std::exception_ptr failure;
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                work(i);
            } catch (...) {
                const std::lock_guard hold{guard};
                failure = std::current_exception();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

// One thread for each operation in flight; `operation` is told its thread's number.
void repeat(std::size_t threads, nanoseconds duration, latencies& into,
            const std::function<void(std::size_t)>& operation) {
    const auto end = clock::now() + duration;
    std::mutex guard;
    run_side_by_side(threads, [&](std::size_t thread) {
        latencies own;
        for (auto now = clock::now(); now < end;) {
            const auto started = now;
            operation(thread);
            now = clock::now();
            own.add(now - started);
        }
        const std::lock_guard hold{guard};
        into.add(own);
    });
}

nanoseconds for_seconds(double seconds) {
    return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
}

timed_result run_timed(const target& to, const command_line& line, std::size_t threads,
                       const std::function<void(std::size_t)>& operation) {
    timed_result result;
    repeat(threads, for_seconds(line.warm_up_seconds), result.latency, operation);
    result.latency.clear();

    const auto cpu_before = to.spent.settled_cpu_time();
    const auto started = clock::now();
    repeat(threads, for_seconds(line.seconds), result.latency, operation);
    result.elapsed = clock::now() - started;
    result.server_cpu = to.spent.settled_cpu_time() - cpu_before;
    return result;
}

std::string lock_name(std::size_t serial) {
    return "bench/lock-" + std::to_string(100'000'000 + serial);
}

// A new connection, a lock of a new name, its release, the end of the connection. The latency is
// that of all four.
timed_result run_connect(const target& to, const command_line& line) {
    std::atomic<std::size_t> serial{0};
    return run_timed(to, line, line.concurrent, [&](std::size_t) {
        const auto one = to.connect();
        one->acquire(lock_name(serial++));
        one->finish();
    });
}

// Owners say that they live, each thread for its share of them in turn.
timed_result run_heartbeat(const target& to, const command_line& line) {
    std::vector<std::unique_ptr<client>> owners;
    for (std::size_t i = 0; i < line.connections; ++i) {
        owners.push_back(to.connect());
        owners.back()->acquire(lock_name(i));
    }
    const auto threads = std::min(line.outstanding, line.connections);
    std::vector<std::size_t> next(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        next[i] = i;
    }
    return run_timed(to, line, threads, [&](std::size_t thread) {
        owners[next[thread]]->keep_alive();
        next[thread] += threads;
        if (next[thread] >= owners.size()) {
            next[thread] = thread;
        }
    });
}

// Clients that want one lock, in a thread each; who gets it takes the time since it was given back.
//
// Peers do not say when a client has begun to wait, so each owner keeps the lock for a moment: by
// then its predecessor has queued up again, and those that were woken for nothing have gone to
// rest.
class relay {
public:
    relay(const target& to, const command_line& line) : to_{to}, line_{line} {}

    timed_result run() {
        run_side_by_side(line_.waiters + 1, [this](std::size_t) { take_part(); });
        return std::move(result_);
    }

private:
    static constexpr auto hold_time = 5ms;

    void take_part() {
        const auto one = to_.connect();
        while (!over_) {
            one->acquire(lock_name(0));
            const auto now = clock::now();
            if (!over_) {
                own(now);
            }
            one->hand_over();
        }
    }

    // The peer's lock orders the calls; the mutex says so to the compiler.
    void own(clock::time_point now) {
        const std::lock_guard hold{guard_};
        if (rounds_ > line_.waiters) {  // the first so many do not count
            result_.latency.add(now - handed_over_);
        }
        std::this_thread::sleep_for(hold_time);
        if (rounds_ == line_.waiters) {
            started_ = clock::now();
            cpu_before_ = to_.spent.cpu_time();
        }
        if (rounds_++ == line_.waiters + line_.rounds) {
            result_.elapsed = clock::now() - started_;
            result_.server_cpu = to_.spent.cpu_time() - cpu_before_;
            over_ = true;
        }
        handed_over_ = clock::now();
    }

    const target& to_;
    const command_line& line_;
    std::atomic<bool> over_{false};
    std::mutex guard_;
    timed_result result_;
    std::size_t rounds_ = 0;
    clock::time_point handed_over_;
    clock::time_point started_;
    nanoseconds cpu_before_{0};
};

void run_memory(const target& to, const command_line& line) {
    std::vector<std::unique_ptr<client>> clients;
    std::string samples;
    const auto sample = [&](std::size_t resident_bytes) {
        samples += samples.empty() ? "" : ", ";
        samples += "{\"sessions\": " + std::to_string(clients.size()) +
                   ", \"resident_bytes\": " + std::to_string(resident_bytes) + "}";
    };
    sample(to.spent.resident_bytes());
    for (const auto size : line.sizes) {
        while (clients.size() < size) {
            clients.push_back(to.connect());
            if (clients.size() == 1) {
                clients.back()->acquire(lock_name(0));
            } else {
                clients.back()->stand_in_line(lock_name(0));
            }
        }
        sample(to.spent.settled_resident_bytes(for_seconds(line.settle_seconds)));
    }
    std::printf("{\"samples\": [%s], \"tls\": \"\"}\n", samples.c_str());
}

void add_options(CLI::App& app, command_line& line) {
    app.require_subcommand(1);
    app.add_option("--server", line.address, "address of the peer, IPv4:PORT")->required();
    app.add_option("--pid", line.pid, "its first process")->required();
    app.add_option("--cgroup", line.cgroup, "folder of the control group that holds it alone");
    app.add_option("--seconds", line.seconds)->capture_default_str();
    app.add_option("--warm-up", line.warm_up_seconds)->capture_default_str();
    auto* connect = app.add_subcommand("connect", "connect, acquire, release, close");
    connect->add_option("--concurrent", line.concurrent)->capture_default_str();
    auto* heartbeat = app.add_subcommand("heartbeat", "owners say that they live");
    heartbeat->add_option("--connections", line.connections)->capture_default_str();
    heartbeat->add_option("--outstanding", line.outstanding)->capture_default_str();
    auto* handover = app.add_subcommand("handover", "the owner releases, a waiter has the lock");
    handover->add_option("--waiters", line.waiters)->capture_default_str();
    handover->add_option("--rounds", line.rounds)->capture_default_str();
    auto* memory = app.add_subcommand("memory", "resident memory at several numbers of sessions");
    memory->add_option("--sizes", line.sizes, "ascending")->delimiter(',');
    memory->add_option("--settle", line.settle_seconds, "seconds to wait for a sample")
        ->capture_default_str();
    memory->add_flag_callback(
        "--waiters", [] {}, "of one lock; there is nothing else here");
}

void run(const CLI::App& app, const command_line& line, client_maker make) {
    raise_descriptor_limit();
    const auto colon = line.address.rfind(':');
    const auto port = ntohs(parse_endpoint(line.address).address.sin_port);
    const target to{.host = line.address.substr(0, colon),
                    .port = port,
                    .make = make,
                    .spent = account{line.pid, line.cgroup}};
    if (app.got_subcommand("memory")) {
        run_memory(to, line);
        return;
    }
    auto result = app.got_subcommand("connect")     ? run_connect(to, line)
                  : app.got_subcommand("heartbeat") ? run_heartbeat(to, line)
                                                    : relay(to, line).run();
    std::printf("%s\n", to_json(result, "").c_str());
}

}  // namespace

int run_driver(int argc, char** argv, client_maker make) {
    CLI::App app{"Load for a peer of monolock"};
    command_line line;
    add_options(app, line);
    CLI11_PARSE(app, argc, argv);
    try {
        run(app, line, make);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

}  // namespace monolock::bench::peers
