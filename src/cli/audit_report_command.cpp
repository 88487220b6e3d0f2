#include "cli/audit_report_command.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

#include "cli/audit_input.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/output_file.hpp"
#include "cli/report_page.hpp"
#include "config/glob.hpp"
#include "telemetry/audit_report.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

telemetry::audit_report_filter filter_of(const audit_report_options& told) {
    telemetry::audit_report_filter out{.since = told.since, .until = told.until, .wants_lock = {}};
    if (told.lock) {
        out.wants_lock = [&pattern = *told.lock](std::string_view lock) {
            return config::matches_glob(pattern, lock);
        };
    }
    return out;
}

}  // namespace

int run_audit_report(const audit_report_options& told) {
    const auto is_output = [&told](const std::string& file) {
        return is_same_file(file, told.output);
    };
    if (std::ranges::any_of(told.files, is_output)) {
        complain("-o " + telemetry::quoted(told.output) +
                 ": is one of the files to read, and stays as it is");
        return to_int(exit_code::usage);
    }
    telemetry::audit_report report{filter_of(told)};
    for_each_line(told.files, [&report](std::string_view line) { report.take(line); });
    if (report.records() == 0 && report.unreadable() > 0) {
        complain(
            "warning: no line is a record of an audit log; if a file is compressed: "
            "zcat FILE | monolockctl audit report - -o PAGE");
    }
    if (report.disordered() > 0) {
        complain("warning: " + std::to_string(report.disordered()) +
                 " grants stand behind later ones of their lock: name each file once, the oldest "
                 "first (as in audit.log.2 audit.log.1 audit.log)");
    }
    const std::string page =
        report_page(report, told, std::chrono::system_clock::now(), MONOLOCK_VERSION);
    if (told.output == "-") {
        return print_result(page);
    }
    try {
        write_whole_file(told.output, page);
    } catch (const std::system_error& failure) {
        complain(failure.what());
        return to_int(exit_code::output_failed);
    }
    return 0;
}

}  // namespace monolock::cli
