#pragma once

#include <string>

#include "cli/admin/api_answers.hpp"
#include "cli/exit_code.hpp"

namespace monolock::cli {

// Says what went wrong, on standard error in words for people and, if programs asked, on standard
// output as a document. The exit status.
[[nodiscard]] int report_failure(bool as_json, exit_code status, const std::string& text,
                                 const json& document);

}  // namespace monolock::cli
