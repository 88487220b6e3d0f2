#include "cli/audit_arguments.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/moment.hpp"
#include "config/number.hpp"
#include "config/options.hpp"
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
    option_row<audit_tail_options>{{.name = "follow",
                                    .kind = option_kind::toggle,
                                    .help = "go on with what is added; survives rotation"},
                                   set_follow},
    option_row<audit_tail_options>{
        {.name = "f", .kind = option_kind::toggle, .help = "short for --follow"}, set_follow},
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

verdict set_output(audit_report_options& into, std::string_view text) {
    if (text.empty()) {
        return diagnostic{"must name a file; - is standard output"};
    }
    into.output = text;
    return std::nullopt;
}

template <std::optional<telemetry::wall_time> audit_report_options::*Member>
verdict set_moment(audit_report_options& into, std::string_view text) {
    into.*Member = parse_moment(text);
    if (!(into.*Member)) {
        return diagnostic{"no time; write 2026-03-01 or 2026-03-01T09:30:00Z, in UTC"};
    }
    return std::nullopt;
}

constexpr std::array report_rows{
    option_row<audit_report_options>{
        {.name = "output",
         .help = "the page to write, at once and whole; - is standard output",
         .takes = config::value_kind::file},
        set_output},
    option_row<audit_report_options>{
        {.name = "o", .help = "short for --output", .takes = config::value_kind::file}, set_output},
    option_row<audit_report_options>{
        {.name = "lock", .help = "only locks that match this glob: * any run, ? one character"},
        [](audit_report_options& into, std::string_view text) -> verdict {
            if (!protocol::is_valid_utf8(text)) {
                return diagnostic{"not valid UTF-8, which every lock name is"};
            }
            into.lock = text;
            return std::nullopt;
        }},
    option_row<audit_report_options>{
        {.name = "since", .help = "only records from then on: 2026-03-01T09:30:00Z, or its front"},
        set_moment<&audit_report_options::since>},
    option_row<audit_report_options>{{.name = "until", .help = "only records before that"},
                                     set_moment<&audit_report_options::until>},
};

// Options into `out`; the words that are left.
template <auto Scan = config::scan, class Options, std::size_t Count>
config::parsed<std::vector<std::string>> parse(const std::array<option_row<Options>, Count>& rows,
                                               std::span<const char* const> words, Options& out) {
    const auto options = config::options_of(rows);
    auto scanned = Scan(options, words, dashes);
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

bool asks_for_help(std::string_view word) {
    return word == "-h" || word == "-help" || word == "--help";
}

// Its files may stand in front of its options: report audit.log -o report.html.
audit_arguments parse_report(std::span<const char* const> words) {
    audit_report_options out;
    auto files = parse<config::scan_anywhere>(report_rows, words, out);
    if (!files) {
        return files.error();
    }
    if (out.output.empty()) {
        return diagnostic{"no page is named: -o FILE, or -o - for standard output"};
    }
    if (out.since && out.until && *out.until <= *out.since) {
        return diagnostic{"--until is not later than --since: nothing lies between"};
    }
    out.files = *std::move(files);
    return out;
}

}  // namespace

help audit_help() {
    return {
        "usage: monolockctl audit verify [OPTIONS] FILE...\n"
        "       monolockctl audit stats [--json] FILE...\n"
        "       monolockctl audit report [OPTIONS] FILE... -o REPORT.html\n"
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
        "report  a page for browsers that needs nothing else: who owned which lock when, how long\n"
        "        was waited and held, and what went wrong\n" +
        config::format_table(config::options_of(report_rows), dashes) +
        "\n"
        "tail    the last lines, for people\n" +
        config::format_table(config::options_of(tail_rows), dashes) +
        "\n"
        "Exit status:\n"
        "    0  proven; read to the end\n"
        "    1  broken\n"
        "    2  wrong usage\n"
        "   66  a file cannot be read\n"
        "   74  standard output, or the page, cannot be written\n"};
}

audit_arguments parse_audit_arguments(std::span<const char* const> words) {
    if (words.empty()) {
        return diagnostic{"audit what? There are: verify, stats, report, tail"};
    }
    const std::string_view verb = words.front();
    const auto rest = words.subspan(1);
    // Behind "--" everything is a file.
    const auto options_end = std::ranges::find(rest, std::string_view{"--"});
    if (verb == "help" || asks_for_help(verb) ||
        std::any_of(rest.begin(), options_end, asks_for_help)) {
        return audit_help();
    }
    if (verb == "verify") {
        return parse_files(verify_rows, rest);
    }
    if (verb == "stats") {
        return parse_files(stats_rows, rest);
    }
    if (verb == "report") {
        return parse_report(rest);
    }
    if (verb == "tail") {
        return parse_tail(rest);
    }
    return diagnostic{"unknown command audit " + quoted(verb) +
                      "; there are: verify, stats, report, tail"};
}

std::vector<config::command_shape> audit_shapes() {
    const auto one = [](std::string_view path, std::string_view summary, const auto& rows,
                        bool several, bool anywhere = false) {
        const auto options = config::options_of(rows);
        return config::command_shape{
            .path = path,
            .summary = summary,
            .options = {options.begin(), options.end()},
            .operands = {{.name = "FILE", .kind = config::operand_kind::file, .repeated = several}},
            .options_anywhere = anywhere};
    };
    return {
        {.path = "audit",
         .summary = "read the server's audit log: prove it, sum it up, watch it",
         .options = {},
         .operands = {}},
        one("audit verify", "prove that owners, ends and tokens are as they must be", verify_rows,
            true),
        one("audit stats", "grants, waits and holds of each lock", stats_rows, true),
        one("audit report", "timelines, waits and holds, expiries and denials as one HTML page",
            report_rows, true, true),
        one("audit tail", "the last lines, for people", tail_rows, false),
    };
}

}  // namespace monolock::cli
