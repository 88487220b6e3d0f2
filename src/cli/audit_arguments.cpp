#include "cli/audit_arguments.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "config/number.hpp"
#include "config/options.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using config::diagnostic;
using config::option_kind;
using config::option_row;
using telemetry::quoted;

using verdict = std::optional<diagnostic>;

constexpr std::string_view dashes = "--";

constexpr std::array verify_rows{
    option_row<audit_verify_options>{
        {.name = "continued",
         .kind = option_kind::toggle,
         .help = "older files are missing: there may be ends of grants from before"},
        [](audit_verify_options& into, std::string_view) -> verdict {
            into.allowed.continued = true;
            return std::nullopt;
        }},
    option_row<audit_verify_options>{
        {.name = "crashes",
         .kind = option_kind::toggle,
         .help = "the server was killed: there may be grants without end, and broken lines"},
        [](audit_verify_options& into, std::string_view) -> verdict {
            into.allowed.crashes = true;
            return std::nullopt;
        }},
};

constexpr std::array stats_rows{
    option_row<audit_stats_options>{
        {.name = "json", .kind = option_kind::toggle, .help = "one object instead of a table"},
        [](audit_stats_options& into, std::string_view) -> verdict {
            into.json = true;
            return std::nullopt;
        }},
};

verdict set_follow(audit_tail_options& into, std::string_view /*value*/) {
    into.follow = true;
    return std::nullopt;
}

verdict set_lines(audit_tail_options& into, std::string_view text) {
    const auto lines = config::parse_number<decltype(into.lines)>(text);
    if (!lines) {
        return diagnostic{"must be a number"};
    }
    into.lines = *lines;
    return std::nullopt;
}

constexpr std::array tail_rows{
    option_row<audit_tail_options>{{.name = "f",
                                    .kind = option_kind::toggle,
                                    .help = "go on with what is added; survives rotation"},
                                   set_follow},
    option_row<audit_tail_options>{{.name = "follow", .kind = option_kind::toggle}, set_follow},
    option_row<audit_tail_options>{
        {.name = "n", .default_text = "10", .help = "begin so many lines before the end"},
        set_lines},
    option_row<audit_tail_options>{
        {.name = "json", .kind = option_kind::toggle, .help = "the lines as they are in the file"},
        [](audit_tail_options& into, std::string_view) -> verdict {
            into.json = true;
            return std::nullopt;
        }},
};

// Options into `out`; the words that are left.
template <class Options, std::size_t Count>
config::parsed<std::vector<std::string>> parse(const std::array<option_row<Options>, Count>& rows,
                                               std::span<const char* const> words, Options& out) {
    const auto options = config::options_of(rows);
    auto scanned = config::scan(options, words, dashes);
    if (!scanned) {
        return scanned.error();
    }
    if (auto wrong = config::apply(rows, scanned->settings, out)) {
        return *std::move(wrong);
    }
    if (scanned->rest.empty()) {
        return diagnostic{"no file is named"};
    }
    return std::move(scanned->rest);
}

template <class Options, std::size_t Count>
audit_arguments parse_files(const std::array<option_row<Options>, Count>& rows,
                            std::span<const char* const> words) {
    Options out;
    auto files = parse(rows, words, out);
    if (!files) {
        return files.error();
    }
    out.files = *std::move(files);
    return out;
}

audit_arguments parse_tail(std::span<const char* const> words) {
    audit_tail_options out;
    auto files = parse(tail_rows, words, out);
    if (!files) {
        return files.error();
    }
    if (files->size() > 1) {
        return diagnostic{"stray argument " + quoted((*files)[1]) + ": tail takes one file"};
    }
    out.file = files->front();
    if (out.follow && out.file == "-") {
        return diagnostic{"standard input cannot be followed"};
    }
    return out;
}

}  // namespace

help audit_help() {
    return {
        "usage: monolockctl audit verify [OPTIONS] FILE...\n"
        "       monolockctl audit stats [--json] FILE...\n"
        "       monolockctl audit tail [OPTIONS] FILE\n"
        "\n"
        "Reads the audit log of a server. Rotated files are named in order, the oldest first;\n"
        "- is standard input.\n"
        "\n"
        "verify  prove that each lock had one owner at a time, each grant one end, and that\n"
        "        tokens rise; or name the first line that breaks it\n" +
        config::format_table(config::options_of(verify_rows), dashes) +
        "\n"
        "stats   grants, waits and holds of each lock; percentiles are up to 6 % too large\n" +
        config::format_table(config::options_of(stats_rows), dashes) +
        "\n"
        "tail    the last lines, for people\n" +
        config::format_table(config::options_of(tail_rows), dashes) +
        "\n"
        "Exit status:\n"
        "    0  proven; read to the end\n"
        "    1  broken\n"
        "    2  wrong usage\n"
        "   66  a file cannot be read\n"
        "   74  standard output cannot be written\n"};
}

audit_arguments parse_audit_arguments(std::span<const char* const> words) {
    if (words.empty()) {
        return diagnostic{"audit what? There are: verify, stats, tail"};
    }
    const std::string_view verb = words.front();
    const auto rest = words.subspan(1);
    if (verb == "verify") {
        return parse_files(verify_rows, rest);
    }
    if (verb == "stats") {
        return parse_files(stats_rows, rest);
    }
    if (verb == "tail") {
        return parse_tail(rest);
    }
    if (verb == "help" || verb == "-h" || verb == "-help" || verb == "--help") {
        return audit_help();
    }
    return diagnostic{"unknown command audit " + quoted(verb) + "; there are: verify, stats, tail"};
}

}  // namespace monolock::cli
