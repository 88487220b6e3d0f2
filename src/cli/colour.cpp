#include "cli/colour.hpp"

#include <unistd.h>

#include <cstdlib>

namespace monolock::cli {

std::string_view begin_of(colour what) noexcept {
    switch (what) {
        case colour::plain:
            return "";
        case colour::bold:
            return "\x1b[1m";
        case colour::yellow:
            return "\x1b[33m";
        case colour::red:
            return "\x1b[31m";
    }
    return "";
}

std::string_view end_of(colour what) noexcept {
    return what == colour::plain ? "" : "\x1b[0m";
}

bool is_standard_output_coloured() noexcept {
    const auto variable = [](const char* name) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
        const char* const value = std::getenv(name);
        return std::string_view{value == nullptr ? "" : value};
    };
    return ::isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() &&
           variable("TERM") != "dumb";
}

}  // namespace monolock::cli
