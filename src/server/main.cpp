#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <variant>

#include "config/server_config.hpp"
#include "posix/standard_descriptors.hpp"
#include "posix/whole_io.hpp"
#include "server/check.hpp"
#include "server/server.hpp"

namespace {

using monolock::server::exit_status;

// What to do with each outcome of reading the command line.
struct act {
    exit_status operator()(const monolock::config::server_config& configuration) const {
        return configuration.check_only ? check(configuration)
                                        : monolock::server::run(configuration);
    }
    exit_status operator()(const monolock::config::help_text& help) const {
        return print(help.text);
    }
    exit_status operator()(const monolock::config::version_text& version) const {
        return print(version.text);
    }
    exit_status operator()(const monolock::config::diagnostic& wrong) const {
        std::cerr << "monolock: " << wrong.text << '\n';
        return exit_status::usage;
    }

    static exit_status check(const monolock::config::server_config& configuration) {
        const auto found = monolock::server::check(configuration);
        if (found) {
            return print(*found);
        }
        for (const monolock::config::diagnostic& wrong : found.error()) {
            std::cerr << "monolock: " << wrong.text << '\n';
        }
        return exit_status::failed;
    }

    static exit_status print(const std::string& text) {
        if (monolock::posix::write_all(STDOUT_FILENO, text)) {
            return exit_status::ok;
        }
        std::cerr << "monolock: standard output cannot be written\n";
        return exit_status::failed;
    }
};

}  // namespace

int main(int argc, char** argv) {
    monolock::posix::fill_standard_descriptors();
    try {
        const std::span<const char* const> words{argv, static_cast<std::size_t>(argc)};
        const auto arguments = monolock::config::parse_server_arguments(
            words.subspan(words.empty() ? 0 : 1),
            [](const char* name) { return std::getenv(name); });
        return static_cast<int>(std::visit(act{}, arguments));
    } catch (const std::exception& error) {
        std::cerr << "monolock: " << error.what() << '\n';
        return static_cast<int>(exit_status::failed);
    }
}
