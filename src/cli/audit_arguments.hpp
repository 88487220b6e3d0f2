#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "config/program_shape.hpp"
#include "telemetry/audit_verifier.hpp"
#include "telemetry/log_record.hpp"

namespace monolock::cli {

// What `monolockctl audit` was told. There is at least one file; "-" is standard input.

struct audit_verify_options {
    telemetry::audit_verifier::allowances allowed;
    std::vector<std::string> files;
};

struct audit_stats_options {
    bool json = false;
    std::vector<std::string> files;
};

struct audit_tail_options {
    bool follow = false;
    bool json = false;  // lines as they are
    std::size_t lines = 10;
    std::string file;
};

struct audit_report_options {
    std::string output;                         // "-" is standard output
    std::optional<std::string> lock;            // a glob
    std::optional<telemetry::wall_time> since;  // records from then on
    std::optional<telemetry::wall_time> until;  // and before that, which is later
    std::vector<std::string> files;
};

using audit_arguments = std::variant<audit_verify_options, audit_stats_options, audit_tail_options,
                                     audit_report_options, help, config::diagnostic>;

// The words after `audit`.
[[nodiscard]] audit_arguments parse_audit_arguments(std::span<const char* const> words);

[[nodiscard]] help audit_help();

// The command lines of all of them as data.
[[nodiscard]] std::vector<config::command_shape> audit_shapes();

}  // namespace monolock::cli
