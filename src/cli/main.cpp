// monolockctl: the command line of monolock. Everything is in the files beside this one.

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>
#include <variant>

#include "cli/admin/admin_arguments.hpp"
#include "cli/admin/admin_command.hpp"
#include "cli/arguments.hpp"
#include "cli/audit_command.hpp"
#include "cli/check_acl.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/health.hpp"
#include "cli/wrapper.hpp"
#include "posix/standard_descriptors.hpp"

namespace monolock::cli {
namespace {

// Nothing in the protocol tells a client whether servers are coordinated. Whoever does not read in
// time is not waited for.
void warn_of_two_lock_spaces(const run_options& options) noexcept {
    if (has_server_list(options) && !options.coordinated) {
        complain(
            "warning: unless these servers share one etcd and prefix, each is a lock space of its "
            "own, and two runs may own one lock (--coordinated: they do)",
            std::chrono::milliseconds{0});
    }
}

int main_of(std::span<const char* const> words) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is no thread yet
    const auto variables = [](const char* name) -> const char* { return std::getenv(name); };
    if (!words.empty() && words.front() == std::string_view{"audit"}) {
        return run_audit(words.subspan(1));
    }
    if (!words.empty() && words.front() == std::string_view{"health"}) {
        return run_health(words.subspan(1), variables);
    }
    if (!words.empty() && is_admin_command(words.front())) {
        return run_admin(words, variables);
    }
    const arguments parsed = parse_arguments(words, variables);
    if (const auto* const text = std::get_if<help>(&parsed)) {
        return print_result(text->text);
    }
    if (const auto* const wrong = std::get_if<config::diagnostic>(&parsed)) {
        const bool about_acl = !words.empty() && words.front() == std::string_view{"check-acl"};
        complain(wrong->text + " (monolockctl help " + (about_acl ? "check-acl)" : "run)"));
        return to_int(exit_code::usage);
    }
    if (const auto* const check = std::get_if<check_acl_options>(&parsed)) {
        return run_check_acl(*check);
    }
    const auto& run = std::get<run_options>(parsed);
    warn_of_two_lock_spaces(run);
    return run_wrapper(run, environ);
}

}  // namespace
}  // namespace monolock::cli

int main(int argc, char** argv) {
    namespace cli = monolock::cli;
    monolock::posix::fill_standard_descriptors();
    try {
        const std::span words{argv, static_cast<std::size_t>(argc)};
        return cli::main_of(words.subspan(argc > 0 ? 1 : 0));
    } catch (const std::exception& failure) {
        cli::complain(failure.what());
        return cli::to_int(cli::exit_code::system_failure);
    }
}
