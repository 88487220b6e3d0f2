#include "cli/shape.hpp"

#include <iterator>
#include <utility>
#include <vector>

#include "cli/admin/admin_arguments.hpp"
#include "cli/arguments.hpp"
#include "cli/audit_arguments.hpp"
#include "cli/check_acl.hpp"
#include "cli/health.hpp"

namespace monolock::cli {

namespace {

using config::command_shape;
using config::option_kind;
using config::program_shape;

void append(std::vector<command_shape>& to, std::vector<command_shape> more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// The commands that `help` explains.
std::string topics(const program_shape& program) {
    std::string out;
    for (const command_shape* const each : config::commands_below(program, "")) {
        out += out.empty() ? "" : " ";
        out += each->path;
    }
    return out;
}

}  // namespace

program_shape shape() {
    program_shape out{.name = "monolockctl", .dashes = "--", .commands = {}};
    out.commands.push_back(
        {.path = "",
         .summary = "named locks over TCP",
         .options = {{.name = "help", .kind = option_kind::request, .help = "print this text"},
                     {.name = "version",
                      .kind = option_kind::request,
                      .help = "print the version"}},
         .operands = {}});
    out.commands.push_back(run_shape());
    append(out.commands, admin_shapes());
    out.commands.push_back(health_shape());
    append(out.commands, audit_shapes());
    out.commands.push_back(check_acl_shape());
    out.commands.push_back(
        {.path = "help",
         .summary = "how a command is used",
         .options = {},
         .operands = {
             {.name = "COMMAND", .kind = config::operand_kind::words, .words = topics(out)}}});
    return out;
}

}  // namespace monolock::cli
