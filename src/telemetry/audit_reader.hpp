#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "telemetry/audit_record.hpp"

namespace monolock::telemetry {

// Why a line is no record of the audit log.
struct audit_malformed {
    std::string why;
    bool breaks_off = false;  // with more at its end it could be one
};

using audit_line = std::variant<audit_record, audit_gap, audit_malformed>;

// Reads lines of the audit log, strictly: what append_audit_line writes, key by key, is a record,
// and next to nothing else. (Escapes may be any that JSON has, so that other JSON writers may have
// had the line in hands, as long as they keep the order and add no spaces.)
class audit_reader {
public:
    // The line comes without its newline. The record's texts live until the next call, and no
    // longer than the line.
    [[nodiscard]] audit_line read(std::string_view line);

private:
    std::array<std::string, 3> decoded_;  // of the three texts, those with escapes
};

}  // namespace monolock::telemetry
