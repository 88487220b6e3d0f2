#include "config/program_shape.hpp"

#include <algorithm>

namespace monolock::config {

std::vector<const command_shape*> commands_below(const program_shape& program,
                                                 std::string_view path) {
    std::vector<const command_shape*> out;
    for (const command_shape& each : program.commands) {
        if (each.path.empty()) {
            continue;
        }
        const std::size_t space = each.path.rfind(' ');
        const auto parent = space == std::string_view::npos ? "" : each.path.substr(0, space);
        if (parent == path) {
            out.push_back(&each);
        }
    }
    return out;
}

std::string_view last_word(std::string_view path) {
    const std::size_t space = path.rfind(' ');
    return space == std::string_view::npos ? path : path.substr(space + 1);
}

std::string format_commands(const program_shape& program, std::string_view path) {
    const auto commands = commands_below(program, path);
    std::size_t width = 0;
    for (const command_shape* const each : commands) {
        width = std::max(width, last_word(each->path).size());
    }
    std::string out;
    for (const command_shape* const each : commands) {
        const std::string_view name = last_word(each->path);
        out += name;
        out.append(width - name.size() + 2, ' ');
        out += each->summary;
        out += '\n';
    }
    return out;
}

}  // namespace monolock::config
