#include "cli/check_acl.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "config/access_rules_json.hpp"
#include "config/options.hpp"
#include "posix/read_file.hpp"
#include "protocol/lock_name.hpp"
#include "protocol/utf8.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using config::diagnostic;
using config::option_kind;
using telemetry::quoted;

using verdict = std::optional<diagnostic>;

constexpr std::string_view dashes = "--";

// As they come from the command line.
struct words_given {
    std::optional<std::string> identity;
    std::optional<std::string> lock;
};

verdict set_identity(words_given& into, std::string_view text) {
    if (text.empty()) {
        return diagnostic{"no client has an empty identity"};
    }
    if (!protocol::is_valid_utf8(text)) {
        return diagnostic{"not valid UTF-8, which every identity is"};
    }
    into.identity = text;
    return std::nullopt;
}

verdict set_lock(words_given& into, std::string_view text) {
    if (const auto wrong = protocol::check_lock_name(text)) {
        return diagnostic{std::string{protocol::canonical_reason(*wrong)}};
    }
    into.lock = text;
    return std::nullopt;
}

using row = config::option_row<words_given>;

constexpr std::array rows{
    row{{.name = "identity", .help = "who claims: the identity of a client certificate"},
        set_identity},
    row{{.name = "lock", .help = "the name of the lock that is claimed"}, set_lock},
    row{{.name = "help", .kind = option_kind::request, .help = "print this text"}},
    row{{.name = "h", .kind = option_kind::request}},
};

constexpr auto options = config::options_of(rows);

arguments options_from(const std::string& file, words_given given) {
    if (given.identity.has_value() != given.lock.has_value()) {
        return diagnostic{given.identity ? "--identity needs --lock as well"
                                         : "--lock needs --identity as well"};
    }
    check_acl_options out{.file = file, .asked = std::nullopt};
    if (given.identity) {
        out.asked = {.identity = *std::move(given.identity), .lock = *std::move(given.lock)};
    }
    return out;
}

}  // namespace

config::command_shape check_acl_shape() {
    return {.path = "check-acl",
            .summary = "check a file of access rules, and say whether they permit a claim",
            .options = {options.begin(), options.end()},
            .operands = {{.name = "FILE", .kind = config::operand_kind::file}}};
}

arguments parse_check_acl(std::span<const char* const> words) {
    const auto scanned = config::scan_anywhere(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (scanned->request) {
        return check_acl_help();
    }
    if (scanned->rest.empty()) {
        return diagnostic{"no file; write: check-acl FILE"};
    }
    if (scanned->rest.size() > 1) {
        return diagnostic{"stray argument " + quoted(scanned->rest[1])};
    }
    words_given given;
    if (auto wrong = config::apply(rows, scanned->settings, given)) {
        return *std::move(wrong);
    }
    return options_from(scanned->rest.front(), std::move(given));
}

help check_acl_help() {
    return {
        "usage: monolockctl check-acl FILE [--identity IDENTITY --lock NAME]\n"
        "\n"
        "Reads FILE as the server reads its -acl-file, and says all that is wrong with it. With\n"
        "both options, says whether that client may claim that lock, and by which rule. Asks no\n"
        "server.\n"
        "\n" +
        config::format_table(options, dashes) +
        "\n"
        "Exit status:\n"
        "    0  FILE is valid; the claim is allowed\n"
        "    1  FILE is missing or not valid\n"
        "    2  wrong usage\n"
        "   74  standard output could not be written\n"
        "   77  FILE is valid; the claim is denied\n"};
}

check_acl_answer answer(const check_acl_options& told,
                        const config::checked<config::access_rules>& rules) {
    if (!rules) {
        return {.text = {}, .wrong = rules.error(), .status = to_int(exit_code::invalid_file)};
    }
    if (!told.asked) {
        return {.text = "valid: " + config::describe(*rules) + "\n", .wrong = {}, .status = 0};
    }
    const auto found = rules->find(told.asked->identity, told.asked->lock);
    if (!found) {
        return {.text = "denied: no rule permits it\n",
                .wrong = {},
                .status = to_int(exit_code::not_authorized)};
    }
    return {.text = "allowed by rule /rules/" + std::to_string(found->rule) + ": identity " +
                    quoted(found->identity) + ", lock " + quoted(found->lock) + "\n",
            .wrong = {},
            .status = 0};
}

int run_check_acl(const check_acl_options& told) {
    const check_acl_answer said =
        answer(told, config::parse_access_rules(
                         told.file, posix::read_file(told.file, config::access_rules_bytes_max)));
    for (const diagnostic& each : said.wrong) {
        complain(each.text);
    }
    return print_result(said.text, said.status);
}

}  // namespace monolock::cli
