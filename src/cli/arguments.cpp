#include "cli/arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/admin/admin_arguments.hpp"
#include "cli/audit_arguments.hpp"
#include "cli/check_acl.hpp"
#include "cli/exit_code.hpp"
#include "cli/health.hpp"
#include "cli/shape.hpp"
#include "config/address.hpp"
#include "config/duration.hpp"
#include "config/number.hpp"
#include "protocol/heartbeat_schedule.hpp"
#include "protocol/lock_name.hpp"
#include "telemetry/escape.hpp"
#include "tls/server_name.hpp"

namespace monolock::cli {

namespace {

using config::diagnostic;
using config::option_kind;
using std::chrono::milliseconds;
using telemetry::quoted;

using verdict = std::optional<diagnostic>;

constexpr std::string_view dashes = "--";

verdict set_lease(run_options& into, std::string_view text) {
    const auto lease = config::parse_duration(text);
    if (!lease) {
        return lease.error();
    }
    if (*lease < protocol::lease_min || *lease > protocol::lease_max ||
        *lease % milliseconds{1} != nanoseconds{0}) {
        return diagnostic{"a lease is whole milliseconds from 1ms to 1193h2m47.295s"};
    }
    into.lease = std::chrono::duration_cast<milliseconds>(*lease);
    return std::nullopt;
}

// A year keeps every sum of a time and a duration far from overflow.
constexpr std::chrono::hours duration_max{8760};

verdict set_duration(std::optional<nanoseconds>& into, std::string_view text) {
    const auto value = config::parse_duration(text);
    if (!value) {
        return value.error();
    }
    if (*value < nanoseconds{0}) {
        return diagnostic{"cannot be negative"};
    }
    if (*value > duration_max) {
        return diagnostic{"at most " + config::format_duration(duration_max)};
    }
    into = *value;
    return std::nullopt;
}

verdict set_conflict_exit_code(run_options& into, std::string_view text) {
    const auto code = config::parse_number<int>(text);
    if (!code || *code < 1 || *code > 255) {
        return diagnostic{"must be a number from 1 to 255"};
    }
    into.conflict_exit_code = *code;
    return std::nullopt;
}

verdict set_server(run_options& into, std::string_view text) {
    const auto list = config::parse_address_list(text);
    if (!list) {
        return list.error();
    }
    for (const config::address& each : *list) {
        if (auto wrong = check_reachable(config::to_string(each))) {
            return wrong;
        }
    }
    into.server = text;
    return std::nullopt;
}

verdict set_admin(run_options& into, std::string_view text) {
    if (auto wrong = check_reachable(text)) {
        return wrong;
    }
    into.admin = text;
    return std::nullopt;
}

// Whoever names a file for TLS wants TLS: it is never left out because one more flag is missing.
tls_options& secured(run_options& into) {
    return into.tls ? *into.tls : into.tls.emplace();
}

// A flag, or a variable whose only value is 1.
verdict check_toggle(std::string_view text) {
    return text.empty() || text == "1" ? verdict{} : diagnostic{"must be 1, or unset"};
}

verdict set_tls(run_options& into, std::string_view text) {
    if (auto wrong = check_toggle(text)) {
        return wrong;
    }
    secured(into);
    return std::nullopt;
}

verdict set_coordinated(run_options& into, std::string_view text) {
    into.coordinated = true;
    return check_toggle(text);
}

template <std::string tls_options::*Member>
verdict set_tls_text(run_options& into, std::string_view text) {
    if (text.empty() || text.find('\0') != std::string_view::npos) {
        return diagnostic{"cannot be empty"};
    }
    secured(into).*Member = text;
    return std::nullopt;
}

using row = config::option_row<run_options>;

constexpr std::array rows{
    row{{.name = "lease",
         .default_text = "10s",
         .help = "silence after which the server gives the lock away"},
        set_lease},
    row{{.name = "wait",
         .default_text = "no limit",
         .help = "how long to wait, from the start; 0: one try"},
        [](run_options& into, std::string_view text) { return set_duration(into.wait, text); }},
    row{{.name = "no-wait", .kind = option_kind::toggle, .help = "the same as --wait 0"},
        [](run_options& into, std::string_view) { return set_duration(into.wait, "0"); }},
    row{{.name = "retry",
         .kind = option_kind::toggle,
         .help = "keep trying when the server is unreachable or drops the claim"},
        [](run_options& into, std::string_view) -> verdict {
            into.retry = true;
            return std::nullopt;
        }},
    row{{.name = "grace",
         .default_text = "0.15 lease",
         .help = "time between TERM and KILL when the lock is lost (at most 5s by default)"},
        [](run_options& into, std::string_view text) { return set_duration(into.grace, text); }},
    row{{.name = "conflict-exit-code",
         .default_text = "75",
         .help = "exit status when the lock was not acquired in time"},
        set_conflict_exit_code},
    row{{.name = "server",
         .variable = "MONOLOCK_SERVER",
         .default_text = ":7070",
         .help = "host:port, :port, [::1]:port or unix:/path; several with commas, if coordinated"},
        set_server},
    row{{.name = "coordinated",
         .kind = option_kind::toggle,
         .variable = "MONOLOCK_COORDINATED",
         .help = "the servers listed share one etcd and prefix: do not warn of two lock spaces"},
        set_coordinated},
    row{{.name = "admin",
         .variable = "MONOLOCK_ADMIN",
         .help = "the server's -admin-listen, to say who has the lock when it is not acquired"},
        set_admin},
    row{{.name = "tls",
         .kind = option_kind::toggle,
         .variable = "MONOLOCK_TLS",
         .help = "speak TLS; trust the system's certificate store. Implied by the next four"},
        set_tls},
    row{{.name = "tls-ca",
         .variable = "MONOLOCK_TLS_CA",
         .help = "trust these CA certificates instead, PEM",
         .takes = config::value_kind::file},
        set_tls_text<&tls_options::ca_file>},
    row{{.name = "tls-cert",
         .variable = "MONOLOCK_TLS_CERT",
         .help = "certificate chain to show to the server, PEM; with --tls-key",
         .takes = config::value_kind::file},
        set_tls_text<&tls_options::certificate_file>},
    row{{.name = "tls-key",
         .variable = "MONOLOCK_TLS_KEY",
         .help = "its private key, PEM, not encrypted",
         .takes = config::value_kind::file},
        set_tls_text<&tls_options::key_file>},
    row{{.name = "tls-name",
         .variable = "MONOLOCK_TLS_NAME",
         .default_text = "host of --server",
         .help = "DNS name or IP address that the server's certificate must be for"},
        set_tls_text<&tls_options::server_name>},
    row{{.name = "help", .kind = option_kind::request, .help = "print this text"}},
    row{{.name = "h", .kind = option_kind::request}},
};

constexpr auto options = config::options_of(rows);

constexpr std::string_view help_verb = "help";

// The commands that do something, as a sentence names them.
std::string command_names() {
    std::string out;
    const config::program_shape program = shape();
    for (const config::command_shape* const each : config::commands_below(program, "")) {
        if (each->path != help_verb) {
            out += out.empty() ? "" : ", ";
            out += each->path;
        }
    }
    return out;
}

constexpr std::string_view program_usage =
    "usage: monolockctl run [OPTIONS] NAME [--] COMMAND [ARGUMENT...]\n"
    "       monolockctl locks|info [OPTIONS]\n"
    "       monolockctl show|release NAME [OPTIONS]\n"
    "       monolockctl kick NAME ADDR [OPTIONS]\n"
    "       monolockctl health [--ready] [--ops ADDRESS]\n"
    "       monolockctl audit verify|stats|report|tail [OPTIONS] FILE...\n"
    "       monolockctl check-acl FILE [--identity IDENTITY --lock NAME]\n"
    "       monolockctl help COMMAND\n"
    "       monolockctl --version\n";

help run_help() {
    return {
        "usage: monolockctl run [OPTIONS] NAME [--] COMMAND [ARGUMENT...]\n"
        "\n"
        "Waits in line for the lock NAME, runs COMMAND (without a shell) while it is held, and\n"
        "releases the lock when COMMAND has ended. COMMAND finds MONOLOCK_NAME and\n"
        "MONOLOCK_TOKEN in its environment; hand the token to the resource that the lock\n"
        "guards and have it refuse a smaller one than it has seen.\n"
        "\n" +
        config::format_table(options, dashes) +
        "\n"
        "Durations are written 5s, 250ms, 1m30s or 1.5h. A variable stands for its option, which "
        "wins.\n"
        "\n"
        "Exit status: that of COMMAND, 128+N if signal N ended it; or\n"
        "    2  wrong usage\n"
        "   69  server not reached, or the claim was dropped while queued\n"
        "   70  refused by the server, or no monolock server, or none that TLS trusts\n"
        "   71  the system refused a process, a thread or memory\n"
        "   74  this text could not be written\n"
        "   75  lock not acquired in time (--conflict-exit-code)\n"
        "   76  lock lost while COMMAND ran, or claim closed by an administrator\n"
        "   77  not authorised for the lock, or client certificate refused\n"
        "   78  a TLS file is missing or wrong\n"
        "  126  COMMAND cannot be executed\n"
        "  127  COMMAND not found\n"};
}

verdict check_grace(run_options& checked) {
    if (!checked.grace) {
        checked.grace = default_grace(checked.lease);
    }
    const nanoseconds bound = grace_bound(checked.lease);
    if (*checked.grace >= bound) {
        return diagnostic{"--grace " + config::format_duration(*checked.grace) +
                          ": must be below " + config::format_duration(bound) +
                          ", which is 0.3 of the lease"};
    }
    return std::nullopt;
}

verdict check_tls(const run_options& checked, const std::vector<config::setting>& settings) {
    if (!checked.tls) {
        return std::nullopt;
    }
    const bool has_certificate = !checked.tls->certificate_file.empty();
    if (has_certificate != !checked.tls->key_file.empty()) {
        return diagnostic{
            has_certificate
                ? config::source_of(options, settings, "tls-cert") + ": needs --tls-key as well"
                : config::source_of(options, settings, "tls-key") + ": needs --tls-cert as well"};
    }
    const std::string& given = checked.tls->server_name;
    const auto servers = config::parse_address_list(checked.server);
    for (const config::address& each : *servers) {
        const auto expected = tls::expected_server_name(each, given);
        if (!expected && given.empty()) {
            return diagnostic{"TLS to " + quoted(config::to_string(each)) +
                              " needs --tls-name: " + expected.error().text};
        }
        if (!expected) {
            return diagnostic{config::source_of(options, settings, "tls-name") + " " +
                              quoted(given) + ": " + expected.error().text};
        }
    }
    return std::nullopt;
}

verdict check_name(std::string_view name) {
    const auto wrong = protocol::check_lock_name(name);
    if (!wrong) {
        return std::nullopt;
    }
    return diagnostic{"NAME " + quoted(name.substr(0, 64)) + ": " +
                      std::string{protocol::canonical_reason(*wrong)}};
}

// NAME [--] COMMAND…
verdict take_name_and_command(run_options& into, std::vector<std::string> words) {
    if (words.empty()) {
        return diagnostic{"no lock name; write: run NAME -- COMMAND"};
    }
    into.name = words.front();
    auto command = words.begin() + 1;
    if (command != words.end() && *command == "--") {
        ++command;
    }
    if (command == words.end()) {
        return diagnostic{"no command; write: run NAME -- COMMAND"};
    }
    into.command.assign(std::make_move_iterator(command), std::make_move_iterator(words.end()));
    return check_name(into.name);
}

arguments parse_run(std::span<const char* const> words, const config::environment& variables) {
    auto scanned = config::scan(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (scanned->request) {
        return run_help();
    }
    run_options out;
    const auto settings = config::with_environment(options, scanned->settings, variables);
    if (auto wrong = config::apply(rows, settings, out)) {
        return *std::move(wrong);
    }
    if (auto wrong = check_tls(out, settings)) {
        return *std::move(wrong);
    }
    if (auto wrong = check_grace(out)) {
        return *std::move(wrong);
    }
    if (auto wrong = take_name_and_command(out, scanned->rest)) {
        return *std::move(wrong);
    }
    return out;
}

arguments parse_help(std::span<const char* const> topics) {
    if (topics.empty()) {
        return help{std::string{program_usage} + "\n" + config::format_commands(shape(), "")};
    }
    if (topics.size() == 1 && topics.front() == std::string_view{"run"}) {
        return run_help();
    }
    if (topics.front() == std::string_view{"audit"}) {  // all of it is on one page
        return audit_help();
    }
    if (topics.size() == 1 && topics.front() == std::string_view{"health"}) {
        return health_help();
    }
    if (topics.size() == 1 && topics.front() == std::string_view{"check-acl"}) {
        return check_acl_help();
    }
    if (topics.size() == 1 && is_admin_command(topics.front())) {
        return admin_help();
    }
    return diagnostic{"no help on " + quoted(topics.front()) +
                      "; there is help on: " + command_names()};
}

}  // namespace

config::command_shape run_shape() {
    return {
        .path = "run",
        .summary = "acquire the lock NAME, run COMMAND while it is held, release it",
        .options = {options.begin(), options.end()},
        .operands = {{.name = "NAME"},
                     {.name = "COMMAND", .kind = config::operand_kind::command, .repeated = true}},
        .options_anywhere = false};
}

bool has_server_list(const run_options& told) noexcept {
    return told.server.find(',') != std::string::npos;
}

nanoseconds default_grace(milliseconds lease) noexcept {
    return std::min<nanoseconds>(std::chrono::seconds{5}, nanoseconds{lease} * 15 / 100);
}

nanoseconds grace_bound(milliseconds lease) noexcept {
    return nanoseconds{lease} * 3 / 10;
}

arguments parse_arguments(std::span<const char* const> words,
                          const config::environment& variables) {
    if (words.empty()) {
        return diagnostic{"nothing to do; write: monolockctl run NAME -- COMMAND"};
    }
    const std::string_view verb = words.front();
    const auto rest = words.subspan(1);
    if (verb == "run") {
        return parse_run(rest, variables);
    }
    if (verb == "check-acl") {
        return parse_check_acl(rest);
    }
    if (verb == help_verb || verb == "-h" || verb == "-help" || verb == "--help") {
        return parse_help(rest);
    }
    if (verb == "-version" || verb == "--version") {
        return help{"monolockctl " MONOLOCK_VERSION "\n"};
    }
    return diagnostic{"unknown command " + quoted(verb) + "; there are: " + command_names() +
                      ", help"};
}

}  // namespace monolock::cli
