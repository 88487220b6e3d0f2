#include "cli/audit_command.hpp"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "cli/age.hpp"
#include "cli/audit_arguments.hpp"
#include "cli/audit_input.hpp"
#include "cli/audit_report_command.hpp"
#include "cli/audit_tail.hpp"
#include "cli/colour.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/table.hpp"
#include "telemetry/audit_stats.hpp"
#include "telemetry/audit_verifier.hpp"
#include "telemetry/escape.hpp"
#include "telemetry/line_splitter.hpp"

namespace monolock::cli {

namespace {

using telemetry::audit_verifier;

// A line that is being written is whole a moment later.
constexpr int rest_of_line_ms = 20;
constexpr int rest_of_line_tries = 10;

// "1 grant", "2 grants".
std::string count_of(std::uint64_t count, const char* noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// The whole file. A last line without its newline may be on its way.
std::optional<audit_verifier::violation> verify_file(audit_verifier& verifier,
                                                     const std::string& path) {
    audit_input input{path};
    telemetry::line_splitter lines;
    std::optional<audit_verifier::violation> found;
    const auto take = [&](std::string_view line) {
        found = verifier.take(line);
        return !found;
    };
    verifier.begin_file(path == "-" ? "standard input" : path);
    for (int tries = 0; tries < rest_of_line_tries;) {
        const std::string_view block = input.read();
        if (!lines.feed(block, take)) {
            return found;
        }
        if (block.empty()) {
            if (lines.rest().empty() || !input.is_regular()) {
                break;
            }
            ++tries;
            ::poll(nullptr, 0, rest_of_line_ms);
        }
    }
    return verifier.end_file(lines.rest());
}

// What is proven, and below it what is not.
std::string report(const audit_verifier& verifier, std::size_t files) {
    const auto found = verifier.result();
    std::string out = "proven: " + count_of(found.lines, "record") + " in " +
                      count_of(files, "file") + ", " + count_of(found.grants, "grant") + ", " +
                      count_of(found.ends, "end") + ", " + std::to_string(found.held) +
                      " still held\n";
    if (found.forced + found.kicked + found.denied > 0) {
        out += std::to_string(found.denied) + " denied, " + std::to_string(found.forced) +
               " released by force, " + count_of(found.kicked, "waiter") + " ended\n";
    }
    if (found.gaps > 0) {
        out += "not proven: what " + count_of(found.lost, "lost record") + " said, at ";
        const char* separator = "";
        for (const auto& where : found.first_gaps) {
            out += std::exchange(separator, ", ") + verifier.text_of(where);
        }
        out += found.gaps > found.first_gaps.size() ? ", …" : "";
        out += "; at least " + std::to_string(found.missing) + " of them were grants or ends\n";
    }
    if (found.ends_from_before > 0) {
        out += "not proven: " + count_of(found.ends_from_before, "end") +
               " of grants from before these files\n";
    }
    if (found.without_end > 0) {
        out += "not proven: the end of " + count_of(found.without_end, "grant") +
               ", taken for cut off by a crash\n";
    }
    if (found.broken_off > 0) {
        out += "not proven: what " + count_of(found.broken_off, "line") +
               " said that a crash broke off\n";
    }
    return out;
}

int run(const audit_verify_options& options) {
    audit_verifier verifier{options.allowed};
    for (const std::string& file : options.files) {
        if (const auto wrong = verify_file(verifier, file)) {
            return print_result(verifier.text_of(wrong->where) + ": " + wrong->why + "\n",
                                to_int(exit_code::invalid_file));
        }
    }
    return print_result(report(verifier, options.files.size()));
}

table::row row_of(std::string name, const telemetry::audit_lock_stats& lock) {
    table::row out;
    out.emplace_back(std::move(name));
    out.emplace_back(std::to_string(lock.grants));
    for (const auto* const times : {&lock.waited, &lock.held}) {
        for (const double share : {0.5, 0.95, 0.99}) {
            out.emplace_back(format_age(times->percentile(share)));
        }
        out.emplace_back(format_age(times->largest()));
    }
    for (const std::size_t reason : {1U, 2U, 3U}) {
        out.emplace_back(std::to_string(lock.ends.at(reason)));
    }
    out.emplace_back(std::to_string(lock.denied));
    return out;
}

// The most used first.
std::string table_of(const telemetry::audit_stats& stats) {
    using entry = std::pair<const std::string, telemetry::audit_lock_stats>;
    std::vector<const entry*> locks;
    for (const entry& each : stats.locks()) {
        locks.push_back(&each);
    }
    std::ranges::stable_sort(locks, std::ranges::greater{},
                             [](const entry* each) { return each->second.grants; });
    std::vector<table::column> columns{{.heading = "LOCK"}};
    for (const std::string_view heading :
         {"GRANTS", "WAIT p50", "p95", "p99", "max", "HELD p50", "p95", "p99", "max", "EXPIRED",
          "IO_TIMEOUT", "FORCED", "DENIED"}) {
        columns.push_back({.heading = heading, .side = table::align::right});
    }
    table rows{std::move(columns)};
    for (const entry* const each : locks) {
        std::string name;
        telemetry::append_logfmt_value(name, each->first);
        rows.add(row_of(std::move(name), each->second));
    }
    rows.add(row_of("(all)", stats.total()));
    std::string out = rows.text(is_standard_output_coloured());
    if (stats.lost() > 0) {
        out += count_of(stats.lost(), "record") + " lost in gaps\n";
    }
    if (stats.unreadable() > 0) {
        out += count_of(stats.unreadable(), "line") + " could not be read\n";
    }
    return out;
}

int run(const audit_stats_options& options) {
    telemetry::audit_stats stats;
    for_each_line(options.files, [&stats](std::string_view line) { stats.take(line); });
    return print_result(options.json ? stats.to_json() : table_of(stats));
}

int run(const audit_report_options& options) {
    return run_audit_report(options);
}

int run(const audit_tail_options& options) {
    return run_audit_tail(options);
}

int run(const help& text) {
    return print_result(text.text);
}

int run(const config::diagnostic& wrong) {
    complain(wrong.text + " (monolockctl help audit)");
    return to_int(exit_code::usage);
}

}  // namespace

int run_audit(std::span<const char* const> words) {
    try {
        return std::visit([](const auto& told) { return run(told); }, parse_audit_arguments(words));
    } catch (const std::system_error& failure) {
        complain(failure.what());
        return to_int(exit_code::no_input);
    }
}

}  // namespace monolock::cli
