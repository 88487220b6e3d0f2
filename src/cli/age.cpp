#include "cli/age.hpp"

namespace monolock::cli {

std::string format_age(std::chrono::milliseconds age) {
    using namespace std::chrono_literals;
    const auto text = [](auto count, const char* unit) { return std::to_string(count) + unit; };
    if (age < 1s) {
        return text(age.count(), "ms");
    }
    if (age < 1min) {
        return text(age / 1s, ".") + text(age % 1s / 100ms, "s");
    }
    if (age < 1h) {
        return text(age / 1min, "m") + text(age % 1min / 1s, "s");
    }
    if (age < 24h) {
        return text(age / 1h, "h") + text(age % 1h / 1min, "m");
    }
    return text(age / 24h, "d") + text(age % 24h / 1h, "h");
}

}  // namespace monolock::cli
