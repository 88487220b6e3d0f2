#include "cli/admin/admin_arguments.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "config/address.hpp"
#include "config/number.hpp"
#include "protocol/lock_name.hpp"
#include "protocol/utf8.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using config::diagnostic;
using config::option_kind;
using config::option_row;
using telemetry::quoted;

using verdict = std::optional<diagnostic>;

constexpr std::string_view dashes = "--";
constexpr std::array verbs{std::string_view{"locks"}, std::string_view{"show"},
                           std::string_view{"release"}, std::string_view{"kick"},
                           std::string_view{"info"}};

// --- options that several commands have

template <class Options>
constexpr option_row<Options> admin_row{
    {.name = "admin",
     .variable = "MONOLOCK_ADMIN",
     .help = "the server's -admin-listen: host:port, :port, [::1]:port or unix:/path"},
    set_reachable<Options, &Options::admin>};

template <class Options>
constexpr option_row<Options> json_row{
    {.name = "json", .kind = option_kind::toggle, .help = "for programs: one JSON document"},
    set_flag<Options, &Options::json>};

template <class Options>
constexpr option_row<Options> yes_row{
    {.name = "yes", .kind = option_kind::toggle, .help = "do not ask on a terminal"},
    set_flag<Options, &Options::yes>};

template <class Options>
constexpr option_row<Options> help_row{
    {.name = "help", .kind = option_kind::request, .help = "print this text"}};

template <class Options>
constexpr option_row<Options> short_help_row{{.name = "h", .kind = option_kind::request}};

// --- options of one

verdict set_match(locks_options& into, std::string_view text) {
    if (!protocol::is_valid_utf8(text)) {
        return diagnostic{"not valid UTF-8, which every lock name is"};
    }
    into.match = text;
    return std::nullopt;
}

verdict set_token(release_options& into, std::string_view text) {
    const auto token = config::parse_number<std::uint64_t>(text);
    if (!token || *token == 0) {
        return diagnostic{"not a fencing token, which is a positive number"};
    }
    into.token = token;
    return std::nullopt;
}

// Every table ends with these four.
constexpr std::size_t common_rows = 4;

constexpr std::array locks_rows{
    option_row<locks_options>{
        {.name = "match", .help = "only names that match this glob: * any run, ? one character"},
        set_match},
    option_row<locks_options>{{.name = "watch",
                               .kind = option_kind::toggle,
                               .help = "go on: redraw on a terminal, else a line for each change"},
                              set_flag<locks_options, &locks_options::watch>},
    admin_row<locks_options>,
    json_row<locks_options>,
    help_row<locks_options>,
    short_help_row<locks_options>,
};

constexpr std::array show_rows{
    admin_row<show_options>,
    json_row<show_options>,
    help_row<show_options>,
    short_help_row<show_options>,
};

constexpr std::array release_rows{
    option_row<release_options>{
        {.name = "token", .help = "only if this is the owner's token: never the next owner"},
        set_token},
    yes_row<release_options>,
    admin_row<release_options>,
    json_row<release_options>,
    help_row<release_options>,
    short_help_row<release_options>,
};

constexpr std::array kick_rows{
    yes_row<kick_options>,  admin_row<kick_options>,      json_row<kick_options>,
    help_row<kick_options>, short_help_row<kick_options>,
};

constexpr std::array info_rows{
    admin_row<info_options>,
    json_row<info_options>,
    help_row<info_options>,
    short_help_row<info_options>,
};

// --- what is no option

verdict take_name(std::string& into, const std::vector<std::string>& words, std::size_t at) {
    if (at >= words.size()) {
        return diagnostic{"no lock name"};
    }
    if (const auto wrong = protocol::check_lock_name(words[at])) {
        return diagnostic{"NAME " + quoted(std::string_view{words[at]}.substr(0, 64)) + ": " +
                          std::string{protocol::canonical_reason(*wrong)}};
    }
    into = words[at];
    return std::nullopt;
}

verdict no_more(const std::vector<std::string>& words, std::size_t count) {
    return words.size() > count ? verdict{diagnostic{"stray argument " + quoted(words[count])}}
                                : std::nullopt;
}

verdict take_words(locks_options& /*into*/, const std::vector<std::string>& words) {
    return no_more(words, 0);
}

verdict take_words(info_options& /*into*/, const std::vector<std::string>& words) {
    return no_more(words, 0);
}

verdict take_words(show_options& into, const std::vector<std::string>& words) {
    const auto wrong = take_name(into.name, words, 0);
    return wrong ? wrong : no_more(words, 1);
}

verdict take_words(release_options& into, const std::vector<std::string>& words) {
    const auto wrong = take_name(into.name, words, 0);
    return wrong ? wrong : no_more(words, 1);
}

verdict take_words(kick_options& into, const std::vector<std::string>& words) {
    if (auto wrong = take_name(into.name, words, 0)) {
        return wrong;
    }
    if (words.size() < 2 || words[1].empty()) {
        return diagnostic{"no waiter; write: kick NAME ADDR, with an address or an id from show"};
    }
    into.who = words[1];
    return no_more(words, 2);
}

template <class Options, std::size_t Count>
admin_arguments parse(const std::array<option_row<Options>, Count>& rows,
                      std::span<const char* const> words, const config::environment& variables) {
    const auto options = config::options_of(rows);
    const auto scanned = config::scan_anywhere(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (scanned->request) {
        return admin_help();
    }
    Options out;
    const auto settings = config::with_environment(options, scanned->settings, variables);
    if (auto wrong = config::apply(rows, settings, out)) {
        return *std::move(wrong);
    }
    if (auto wrong = take_words(out, scanned->rest)) {
        return *std::move(wrong);
    }
    if (out.admin.empty()) {
        return diagnostic{"no admin address: --admin, or MONOLOCK_ADMIN"};
    }
    return out;
}

// The options that only this command has: they come first, before four that all have.
template <class Options, std::size_t Count>
std::string own_options(const std::array<option_row<Options>, Count>& rows) {
    const auto options = config::options_of(rows);
    return config::format_table(std::span{options}.first(Count - common_rows), dashes);
}

}  // namespace

std::optional<diagnostic> check_reachable(std::string_view address) {
    const auto where = config::parse_address(address);
    if (!where) {
        return where.error();
    }
    const auto* const tcp = std::get_if<config::tcp_address>(&*where);
    if (tcp != nullptr && tcp->port == 0) {
        return diagnostic{"nothing can be reached at port 0"};
    }
    return std::nullopt;
}

bool is_admin_command(std::string_view verb) noexcept {
    return std::ranges::find(verbs, verb) != verbs.end();
}

admin_arguments parse_admin_arguments(std::span<const char* const> words,
                                      const config::environment& variables) {
    const std::string_view verb = words.front();
    const auto rest = words.subspan(1);
    if (verb == "locks") {
        return parse(locks_rows, rest, variables);
    }
    if (verb == "show") {
        return parse(show_rows, rest, variables);
    }
    if (verb == "release") {
        return parse(release_rows, rest, variables);
    }
    if (verb == "kick") {
        return parse(kick_rows, rest, variables);
    }
    return parse(info_rows, rest, variables);
}

help admin_help() {
    return {
        "usage: monolockctl locks [--match GLOB] [--watch] [--json]\n"
        "       monolockctl show NAME [--json]\n"
        "       monolockctl release NAME [--token N] [--yes] [--json]\n"
        "       monolockctl kick NAME ADDR [--yes] [--json]\n"
        "       monolockctl info [--json]\n"
        "\n"
        "Asks a server's admin address who holds which lock and who waits, and ends one claim.\n"
        "On a terminal release and kick show whom they would end, and ask; otherwise they do as\n"
        "they are told.\n"
        "\n"
        "locks    every lock that somebody owns\n" +
        own_options(locks_rows) +
        "show     one lock with its whole queue\n"
        "release  end the owner's claim; the next in the queue is granted\n" +
        own_options(release_rows) +
        "kick     end the claim of one waiter, named by its address or its id\n" +
        own_options(kick_rows) +
        "info     the server: version, configuration, locks and sessions\n"
        "\n"
        "All take\n" +
        config::format_table(config::options_of(info_rows), dashes) +
        "\n"
        "A variable stands for its option, which wins. With --json standard output is one JSON\n"
        "document, also when there was an error: {\"error\": \"why\"}. With --watch it is one a "
        "line.\n"
        "\n"
        "Exit status:\n"
        "    0  done\n"
        "    1  there is no such lock, or no such waiter\n"
        "    2  wrong usage\n"
        "    3  you were asked, and did not say yes\n"
        "   69  server not reached, or it did not answer in time\n"
        "   70  refused by the server, or no admin API answers there\n"
        "   71  the system refused a process, a thread or memory\n"
        "   74  standard output could not be written\n"
        "   75  somebody else owns the lock by now (--token), or several waiters have the address\n"
        "   77  the server does not answer us: 403\n"};
}

std::vector<config::command_shape> admin_shapes() {
    const auto one = [](std::string_view path, std::string_view summary, const auto& rows,
                        std::vector<config::operand> operands) {
        const auto options = config::options_of(rows);
        return config::command_shape{.path = path,
                                     .summary = summary,
                                     .options = {options.begin(), options.end()},
                                     .operands = std::move(operands)};
    };
    return {
        one("locks", "who holds which lock; --watch goes on", locks_rows, {}),
        one("show", "one lock with its queue", show_rows, {{.name = "NAME"}}),
        one("release", "end the claim of a lock's owner", release_rows, {{.name = "NAME"}}),
        one("kick", "end the claim of one waiter", kick_rows, {{.name = "NAME"}, {.name = "ADDR"}}),
        one("info", "the server and its configuration", info_rows, {}),
    };
}

}  // namespace monolock::cli
