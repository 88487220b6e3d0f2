#include "cli/health.hpp"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>

#include "cli/admin/admin_arguments.hpp"
#include "cli/admin/admin_channel.hpp"
#include "cli/admin/admin_error.hpp"
#include "cli/admin/lock_text.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using config::diagnostic;
using config::option_kind;
using config::option_row;
using telemetry::quoted;

constexpr std::string_view dashes = "--";
constexpr std::chrono::seconds patience{5};
constexpr std::size_t answer_bytes_max = 4096;
constexpr unsigned http_ok = 200;
constexpr unsigned http_unavailable = 503;

// The variable is the server's own, so that inside of a container one setting is enough.
constexpr std::array rows{
    option_row<health_options>{{.name = "ready",
                                .kind = option_kind::toggle,
                                .help = "whether it takes clients: /readyz in place of /healthz"},
                               set_flag<health_options, &health_options::ready>},
    option_row<health_options>{
        {.name = "ops",
         .variable = "MONOLOCK_OPS_LISTEN_ADDRESS",
         .help = "the server's -ops-listen: host:port, :port, [::1]:port or unix:/path"},
        set_reachable<health_options, &health_options::ops>},
    option_row<health_options>{{.name = "help", .kind = option_kind::request}},
    option_row<health_options>{{.name = "h", .kind = option_kind::request}},
};

constexpr auto options = config::options_of(rows);

int refuse(const health_options& told, const std::string& why) {
    complain(word(told.ops) + ": " + why);
    return to_int(exit_code::refused);
}

int run(const health_options& told) {
    try {
        admin_channel channel{told.ops,
                              {.give_up_at = std::chrono::steady_clock::now() + patience,
                               .answer_bytes_max = answer_bytes_max}};
        const admin_answer answer = channel.get(told.ready ? "/readyz" : "/healthz");
        const std::string_view said =
            std::string_view{answer.body}.substr(0, answer.body.find('\n'));
        if (answer.status == http_ok && said == "ok") {
            return print_result("ok\n");
        }
        if (answer.status == http_unavailable) {
            complain(word(told.ops) + ": " + word(said));
            return to_int(exit_code::unhealthy);
        }
        return refuse(told, "what answers there is not a server's -ops-listen: status " +
                                std::to_string(answer.status));
    } catch (const admin_error& failed) {
        if (failed.status() == exit_code::refused) {
            return refuse(told, "what answers there is not a server's -ops-listen");
        }
        complain(failed.what());
        return to_int(failed.status());
    }
}

int run(const help& text) {
    return print_result(text.text);
}

int run(const diagnostic& wrong) {
    complain(wrong.text + " (monolockctl help health)");
    return to_int(exit_code::usage);
}

}  // namespace

health_arguments parse_health_arguments(std::span<const char* const> words,
                                        const config::environment& variables) {
    const auto scanned = config::scan_anywhere(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (scanned->request) {
        return health_help();
    }
    health_options out;
    const auto settings = config::with_environment(options, scanned->settings, variables);
    if (auto wrong = config::apply(rows, settings, out)) {
        return *std::move(wrong);
    }
    if (!scanned->rest.empty()) {
        return diagnostic{"stray argument " + quoted(scanned->rest.front())};
    }
    if (out.ops.empty()) {
        return diagnostic{"no ops address: --ops, or MONOLOCK_OPS_LISTEN_ADDRESS"};
    }
    return out;
}

help health_help() {
    return {
        "usage: monolockctl health [--ready] [--ops ADDRESS]\n"
        "\n"
        "Asks a server's ops address once whether it is healthy, for what cannot speak HTTP.\n" +
        config::format_table(options, dashes) +
        "\n"
        "Exit status:\n"
        "    0  it is\n"
        "    1  it is not, and says why\n"
        "    2  wrong usage\n"
        "   69  not reached, or no answer within 5 s\n"
        "   70  what answers there is no server's ops address\n"
        "   74  standard output could not be written\n"};
}

config::command_shape health_shape() {
    return {.path = "health",
            .summary = "whether the server is healthy, as an exit status",
            .options = {options.begin(), options.end()},
            .operands = {}};
}

int run_health(std::span<const char* const> words, const config::environment& variables) {
    return std::visit([](const auto& told) { return run(told); },
                      parse_health_arguments(words, variables));
}

}  // namespace monolock::cli
