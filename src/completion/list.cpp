#include "completion/completion.hpp"

namespace monolock::completion {

std::string list(const config::program_shape& program) {
    std::string out;
    for (const config::command_shape& command : program.commands) {
        for (const config::option& each : command.options) {
            out += command.path;
            out += '\t';
            out += config::spelled(each.name, program.dashes);
            out += '\t';
            out += each.variable == nullptr ? "" : each.variable;
            out += '\t';
            out += each.default_text;
            out += '\t';
            out += each.help;
            out += '\n';
        }
    }
    return out;
}

}  // namespace monolock::completion
