// The server's shards, sessions and timers over a network in memory: what it costs to have more
// sessions than a machine has descriptors. Prints one JSON object; bench/README.md says what the
// cases measure.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "in_memory/cases.hpp"

namespace monolock::bench::in_memory {
namespace {

// What the command line asks for.
struct command_line {
    heartbeat_options heartbeat;
    queue_options queue;
    listing_options listing;
    expiry_options expiry;
    memory_options memory;
    beating_options beating;
    bool quick = false;
};

template <class Options>
CLI::App* add_case(CLI::App& app, const char* name, const char* what, Options& options) {
    CLI::App* const made = app.add_subcommand(name, what);
    made->add_option("--shards", options.shards)->capture_default_str();
    return made;
}

void add_time(CLI::App* to, const char* name, std::chrono::milliseconds& time) {
    to->add_option_function<std::int64_t>(
        name, [&time](std::int64_t ms) { time = std::chrono::milliseconds{ms}; }, "milliseconds");
}

void add_cases(CLI::App& app, command_line& line) {
    app.require_subcommand(1);
    CLI::App* made = add_case(app, "heartbeat", "CPU of a heartbeat", line.heartbeat);
    made->add_option("--sessions", line.heartbeat.sessions)->capture_default_str();
    made->add_flag("--floor", line.heartbeat.floor, "the bare loop instead of the server");
    made->add_option("--slices", line.heartbeat.slices, "whose median is the figure")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);

    made = add_case(app, "queue", "promotion, and leaving a queue", line.queue);
    made->add_option("--waiters", line.queue.waiters)->capture_default_str();
    made->add_option("--rounds", line.queue.rounds)->capture_default_str();

    made = add_case(app, "listing", "a listing of all locks", line.listing);
    made->add_option("--sessions", line.listing.sessions)->capture_default_str();

    made = add_case(app, "expiry", "sessions that fall silent", line.expiry);
    made->add_option("--sessions", line.expiry.sessions)->capture_default_str();
    made->add_option("--waiters", line.expiry.waiters, "locks with a waiter")
        ->capture_default_str();
    add_time(made, "--lease", line.expiry.lease);
    made->add_flag("--at-once", line.expiry.at_once, "in one burst");

    made = add_case(app, "memory", "resident memory of sessions", line.memory);
    made->add_option("--sessions", line.memory.sessions)->capture_default_str();
    made->add_flag("--waiters", line.memory.waiters, "all on one lock");

    made = add_case(app, "beating", "sessions that beat as clients do", line.beating);
    made->add_option("--sessions", line.beating.sessions)->capture_default_str();
    add_time(made, "--lease", line.beating.lease);
    add_time(made, "--duration", line.beating.duration);

    app.add_subcommand("all", "all cases at several sizes, each in a process of its own")
        ->add_flag("--quick", line.quick, "sizes of a smoke test");
}

using named_case = std::pair<std::string, std::function<figures()>>;

std::vector<named_case> all_cases(bool quick) {
    using std::chrono::milliseconds;
    const auto sizes = quick ? std::vector<std::size_t>{1'000, 5'000}
                             : std::vector<std::size_t>{1'000, 100'000, 1'000'000};
    std::vector<named_case> cases;
    const auto add = [&cases](const std::string& name, auto run, auto options) {
        cases.emplace_back(name, [run, options] { return run(options); });
    };
    for (const std::size_t size : sizes) {
        const std::string of = " of " + std::to_string(size);
        heartbeat_options heartbeat{.sessions = size};
        if (quick) {
            heartbeat.slices = 1;
            heartbeat.slice_heartbeats_min = 1;
        }
        for (const bool floor : {true, false}) {
            heartbeat.floor = floor;
            add((floor ? "floor heartbeat" : "heartbeat") + of, run_heartbeat, heartbeat);
        }
        heartbeat.shards = 2;
        add("heartbeat, 2 shards," + of, run_heartbeat, heartbeat);
        if (size > sizes.front()) {
            add("memory, a lock each," + of, run_memory, memory_options{.sessions = size});
            add("memory, one queue" + of, run_memory,
                memory_options{.sessions = size, .waiters = true});
            add("listing" + of, run_listing,
                listing_options{.sessions = size, .alone = milliseconds{quick ? 50 : 1'000}});
        }
    }
    for (const std::size_t waiters : {std::size_t{10}, sizes[1]}) {
        add("queue of " + std::to_string(waiters), run_queue,
            queue_options{.waiters = waiters, .rounds = quick ? 100U : 20'000U});
    }
    expiry_options expiry{.sessions = sizes[1], .waiters = sizes[1] / 10};
    expiry.lease = milliseconds{quick ? 2'000 : 4'000};
    for (const bool at_once : {false, true}) {
        expiry.at_once = at_once;
        add(at_once ? "expiry at once" : "expiry", run_expiry, expiry);
    }
    add("beating", run_beating,
        beating_options{.sessions = sizes.back(),
                        .lease = milliseconds{quick ? 400 : 10'000},
                        .duration = milliseconds{quick ? 200 : 30'000}});
    return cases;
}

// The child has the memory of one case alone, and the floor's thread ends with it.
[[noreturn]] void run_in_child(const named_case& each) {
    int status = EXIT_SUCCESS;
    try {
        std::printf("  \"%s\": %s", each.first.c_str(), each.second().dump().c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in_memory: %s: %s\n", each.first.c_str(), error.what());
        status = EXIT_FAILURE;
    }
    std::fflush(stdout);
    std::_Exit(status);
}

int run_all(bool quick) {
    const char* separator = "{\n";
    for (const named_case& each : all_cases(quick)) {
        std::printf("%s", separator);
        std::fflush(stdout);
        separator = ",\n";
        const pid_t child = ::fork();
        if (child == 0) {
            run_in_child(each);
        }
        int status = 0;
        if (child < 0 || ::waitpid(child, &status, 0) < 0 || status != 0) {
            std::fprintf(stderr, "in_memory: %s could not be measured\n", each.first.c_str());
            return EXIT_FAILURE;
        }
    }
    std::printf("\n}\n");
    return EXIT_SUCCESS;
}

figures run_one(const CLI::App& app, const command_line& line) {
    if (app.got_subcommand("heartbeat")) {
        return run_heartbeat(line.heartbeat);
    }
    if (app.got_subcommand("queue")) {
        return run_queue(line.queue);
    }
    if (app.got_subcommand("listing")) {
        return run_listing(line.listing);
    }
    if (app.got_subcommand("expiry")) {
        return run_expiry(line.expiry);
    }
    if (app.got_subcommand("memory")) {
        return run_memory(line.memory);
    }
    return run_beating(line.beating);
}

}  // namespace
}  // namespace monolock::bench::in_memory

int main(int argc, char** argv) {
    namespace in_memory = monolock::bench::in_memory;
    in_memory::command_line line;
    CLI::App app{"Many sessions of the server over a network in memory"};
    in_memory::add_cases(app, line);
    CLI11_PARSE(app, argc, argv);
    // A pause of a client is shorter than the usual slack of 50 µs.
    ::prctl(PR_SET_TIMERSLACK, 1);
    if (app.got_subcommand("all")) {
        return in_memory::run_all(line.quick);
    }
    int status = EXIT_SUCCESS;
    try {
        std::printf("%s\n", in_memory::run_one(app, line).dump(2).c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "in_memory: %s\n", error.what());
        status = EXIT_FAILURE;
    }
    std::fflush(stdout);
    std::_Exit(status);  // the floor's thread serves for ever
}
