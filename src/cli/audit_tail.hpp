#pragma once

#include <string>
#include <string_view>

#include "cli/audit_arguments.hpp"

namespace monolock::cli {

// How a line looks to people, with its newline:
//   2026-03-01T09:30:00.250Z  granted   nightly  token=7 waited=3m12s  192.0.2.1:5000 worker-1
// What is no record comes out quoted. Colour for what an operator should see: ends that nobody
// asked for, refusals, gaps.
[[nodiscard]] std::string format_audit_line(std::string_view line, bool coloured);

// `monolockctl audit tail`; the exit status. Following goes on until a signal ends the process.
[[nodiscard]] int run_audit_tail(const audit_tail_options& options);

}  // namespace monolock::cli
