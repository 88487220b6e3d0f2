#pragma once

#include <chrono>
#include <string>

namespace monolock::cli {

// How long something took or is ago, for people: "0ms", "250ms", "12.3s", "3m12s", "5h10m",
// "12d3h". Cut off, not rounded: never more than it was.
[[nodiscard]] std::string format_age(std::chrono::milliseconds age);

}  // namespace monolock::cli
