#pragma once

#include "cli/audit_arguments.hpp"

namespace monolock::cli {

// `monolockctl audit report`; the exit status. Throws std::system_error for a file that cannot be
// read.
[[nodiscard]] int run_audit_report(const audit_report_options& told);

}  // namespace monolock::cli
