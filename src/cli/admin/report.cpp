#include "cli/admin/report.hpp"

#include "cli/console.hpp"

namespace monolock::cli {

int report_failure(bool as_json, exit_code status, const std::string& text, const json& document) {
    complain(text);
    if (as_json && !print(to_line(document))) {
        return to_int(exit_code::output_failed);
    }
    return to_int(status);
}

}  // namespace monolock::cli
