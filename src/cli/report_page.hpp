#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/audit_arguments.hpp"
#include "telemetry/audit_report.hpp"
#include "web/embedded_file.hpp"

namespace monolock::cli {

// The files of the page: report/report.html, .css and .js.
[[nodiscard]] std::span<const web::embedded_file> report_files() noexcept;

// The page that draws a report: one text that needs nothing else, whose policy lets nothing run or
// load but what is in it. It says what was asked for, when and by which version it was made.
[[nodiscard]] std::string report_page(const telemetry::audit_report& report,
                                      const audit_report_options& told, telemetry::wall_time made,
                                      std::string_view version);

}  // namespace monolock::cli
