#include "config/parsed.hpp"

namespace monolock::config {

std::string joined(const diagnostics& all) {
    std::string line;
    for (const diagnostic& each : all) {
        line += (line.empty() ? "" : "; ") + each.text;
    }
    return line;
}

}  // namespace monolock::config
