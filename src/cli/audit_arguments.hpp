#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "telemetry/audit_verifier.hpp"

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

using audit_arguments = std::variant<audit_verify_options, audit_stats_options, audit_tail_options,
                                     help, config::diagnostic>;

// The words after `audit`.
[[nodiscard]] audit_arguments parse_audit_arguments(std::span<const char* const> words);

[[nodiscard]] help audit_help();

}  // namespace monolock::cli
