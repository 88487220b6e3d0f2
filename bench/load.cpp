// The load generator: one thread that speaks the protocol to a server, measures it from outside and
// prints one JSON object. `bench/run` starts it; bench/README.md says what the modes measure.

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "load/modes.hpp"

namespace monolock::bench {
namespace {

void print(timed_result result, const std::string& negotiated) {
    std::printf("%s\n", to_json(result, negotiated).c_str());
}

void print(const std::vector<memory_sample>& samples, const std::string& negotiated) {
    std::printf("{\"samples\": [");
    const char* separator = "";
    for (const auto& sample : samples) {
        std::printf("%s{\"sessions\": %zu, \"resident_bytes\": %zu}", separator, sample.sessions,
                    sample.resident_bytes);
        separator = ", ";
    }
    std::printf("], \"tls\": \"%s\"}\n", negotiated.c_str());
}

void print(leave_result result) {
    const auto leaves = static_cast<double>(result.latency.count());
    std::printf(
        "{\"operations\": %.0f, \"cpu_us\": %.4f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
        "\"max_us\": %.1f}\n",
        leaves, microseconds(result.server_cpu) / leaves,
        microseconds(result.latency.percentile(0.5)), microseconds(result.latency.percentile(0.99)),
        microseconds(result.latency.percentile(1.0)));
}

void print(expire_result result) {
    const auto ends = static_cast<double>(result.late_at_most.count());
    std::printf("{\"operations\": %.0f, \"early\": %zu, \"cpu_us\": %.4f, ", ends, result.early,
                microseconds(result.server_cpu) / ends);
    const auto late = [](const char* bound, latencies& values, const char* separator) {
        std::printf("\"p50_ms%s\": %.3f, \"p99_ms%s\": %.3f, \"max_ms%s\": %.3f%s", bound,
                    microseconds(values.percentile(0.5)) / 1000, bound,
                    microseconds(values.percentile(0.99)) / 1000, bound,
                    microseconds(values.percentile(1.0)) / 1000, separator);
    };
    late("", result.late_at_most, ", ");
    late("_at_least", result.late_at_least, "}\n");
}

// For the report: the programs of one build share their compiler.
std::string compiler() {
#ifdef __clang__
    return __VERSION__;
#else
    return "g++ " __VERSION__;
#endif
}

// What the command line asks for.
struct command_line {
    std::string address;
    pid_t pid = 0;
    bool tls = false;
    std::string certificate;
    std::string key;
    double seconds = 2;
    double warm_up_seconds = 0.3;
    heartbeat_options heartbeat;
    connect_options connect;
    handover_options handover;
    memory_options memory;
    leave_options leave;
    expire_options expire;
    crowd_options crowd;
    std::uint32_t lease_ms = 10'000;
    std::optional<std::uint32_t> spread_ms;
};

std::chrono::nanoseconds to_duration(double seconds) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds));
}

void add_crowd_modes(CLI::App& app, command_line& line) {
    auto* hold = app.add_subcommand("hold", "sessions that beat as clients of the library do");
    auto* storm = app.add_subcommand("storm", "clients that connect all at once");
    for (auto* mode : {hold, storm}) {
        mode->add_option("--clients", line.crowd.clients)->capture_default_str();
        mode->add_option("--first", line.crowd.first, "number of the first client's lock")
            ->capture_default_str();
    }
    auto* expire = app.add_subcommand("expire", "sessions that fall silent");
    expire->add_option("--sessions", line.expire.sessions)->capture_default_str();
    expire->add_option("--spread-ms", line.spread_ms, "in which they do (a quarter of the lease)");
    expire->add_flag("--heirs", line.expire.heirs, "each end is seen by the lock's next owner");
    for (auto* mode : {hold, storm, expire}) {
        mode->add_option("--lease-ms", line.lease_ms)->capture_default_str();
    }
}

void add_modes(CLI::App& app, command_line& line) {
    app.require_subcommand(1);
    app.set_version_flag("--version", compiler());
    app.add_option("--server", line.address, "address of the server, IPv4:PORT")->required();
    app.add_option("--pid", line.pid, "process of the server, whose CPU and memory are read")
        ->required();
    auto* tls = app.add_flag("--tls", line.tls, "speak TLS; the server is not verified");
    auto* certificate = app.add_option("--tls-cert", line.certificate, "the client's, a PEM file");
    auto* key = app.add_option("--tls-key", line.key, "its key")->needs(certificate);
    certificate->needs(tls)->needs(key);
    app.add_option("--seconds", line.seconds, "length of the measured part of a timed mode")
        ->capture_default_str();
    app.add_option("--warm-up", line.warm_up_seconds, "seconds of load before the measured part")
        ->capture_default_str();

    auto* heartbeat = app.add_subcommand("heartbeat", "heartbeats of many sessions");
    heartbeat->add_option("--connections", line.heartbeat.connections)->capture_default_str();
    heartbeat->add_option("--outstanding", line.heartbeat.outstanding, "in flight, closed loop")
        ->capture_default_str();
    heartbeat->add_option("--rate", line.heartbeat.rate, "a second, instead of the closed loop");
    heartbeat->add_flag("--latency-only", line.heartbeat.latency_only,
                        "the server does other things too: its CPU time says nothing");

    auto* connect = app.add_subcommand("connect", "connect, ACQUIRE, ACQUIRED, close");
    connect->add_option("--concurrent", line.connect.concurrent, "at a time, closed loop")
        ->capture_default_str();
    connect->add_option("--rate", line.connect.rate, "a second, instead of the closed loop");

    auto* handover = app.add_subcommand("handover", "the owner closes, the next has ACQUIRED");
    handover->add_option("--waiters", line.handover.waiters)->capture_default_str();
    handover->add_option("--rounds", line.handover.rounds)->capture_default_str();

    auto* memory = app.add_subcommand("memory", "resident memory at several numbers of sessions");
    memory->add_option("--sizes", line.memory.sizes, "ascending")->delimiter(',');
    memory->add_flag("--waiters", line.memory.waiters, "all sessions on one lock");

    auto* leave = app.add_subcommand("leave", "waiters leave the middle of their queues");
    leave->add_option("--queues", line.leave.queues)->capture_default_str();
    leave->add_option("--waiters", line.leave.waiters, "in each queue")->capture_default_str();
    leave->add_option("--leaves", line.leave.leaves)->capture_default_str();

    add_crowd_modes(app, line);
}

// The kernel's struct sched_attr, first version; the header that has it and <sched.h> exclude each
// other.
struct scheduling {
    std::uint32_t size = sizeof(scheduling);
    std::uint32_t policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0;  // of a normal thread: its slice in nanoseconds
    std::uint64_t deadline = 0;
    std::uint64_t period = 0;
};

// Who shares the cores with others would measure how long it waits for one itself: a millisecond
// and more each time. With a short slice the kernel (Linux 6.12 or newer) lets it in sooner; older
// ones do not mind.
void ask_for_a_short_slice() noexcept {
    scheduling wish;
    if (::syscall(SYS_sched_getattr, 0, &wish, sizeof wish, 0) == 0) {
        wish.runtime = 100'000;  // the shortest
        ::syscall(SYS_sched_setattr, 0, &wish, 0);
    }
}

void run(const CLI::App& app, command_line& line) {
    raise_descriptor_limit();
    if (line.heartbeat.latency_only || app.got_subcommand("hold") || app.got_subcommand("expire")) {
        ask_for_a_short_slice();
    }
    // A pause between heartbeats at a fixed rate is shorter than the usual slack of 50 µs.
    ::prctl(PR_SET_TIMERSLACK, 1);
    const target to{.server = parse_endpoint(line.address),
                    .process = server_process{line.pid},
                    .client = line.tls ? make_client_context(line.certificate, line.key) : nullptr};
    line.heartbeat.duration = line.connect.duration = to_duration(line.seconds);
    line.heartbeat.warm_up = line.connect.warm_up = to_duration(line.warm_up_seconds);
    line.crowd.lease = line.expire.lease = std::chrono::milliseconds{line.lease_ms};
    line.expire.spread = std::chrono::milliseconds{line.spread_ms.value_or(line.lease_ms / 4)};
    if (app.got_subcommand("hold")) {
        run_hold(to, line.crowd, to_duration(line.seconds));
        return;
    }
    if (app.got_subcommand("storm")) {
        line.crowd.returns = true;
        run_storm(to, line.crowd, to_duration(line.seconds));
        return;
    }
    if (app.got_subcommand("leave")) {
        print(run_leave(to, line.leave));
        return;
    }
    if (app.got_subcommand("expire")) {
        print(run_expire(to, line.expire));
        return;
    }
    // Asked for only afterwards, so that the measured server has served nothing but the load.
    const auto report = [&to](const auto& result) { print(result, negotiated_with(to)); };
    if (app.got_subcommand("heartbeat")) {
        report(run_heartbeat(to, line.heartbeat));
    } else if (app.got_subcommand("connect")) {
        report(run_connect(to, line.connect));
    } else if (app.got_subcommand("handover")) {
        report(run_handover(to, line.handover));
    } else {
        report(run_memory(to, line.memory));
    }
}

}  // namespace
}  // namespace monolock::bench

int main(int argc, char** argv) {
    CLI::App app{"Load generator for a monolock server or its floor"};
    monolock::bench::command_line line;
    monolock::bench::add_modes(app, line);
    CLI11_PARSE(app, argc, argv);
    try {
        monolock::bench::run(app, line);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "load: %s\n", error.what());
        return 1;
    }
    return 0;
}
