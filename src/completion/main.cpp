// Writes what a shell needs to complete one of our command lines; run by the build.

#include <array>
#include <exception>
#include <iostream>
#include <span>
#include <string_view>

#include "cli/shape.hpp"
#include "completion/completion.hpp"
#include "config/server_config.hpp"

namespace {

struct writer {
    std::string_view name;
    std::string (*write)(const monolock::config::program_shape&);
};

constexpr std::array writers{
    writer{"bash", monolock::completion::for_bash}, writer{"zsh", monolock::completion::for_zsh},
    writer{"fish", monolock::completion::for_fish}, writer{"list", monolock::completion::list}};

int main_of(std::span<const char* const> words) {
    if (words.size() == 2) {
        for (const auto& program : {monolock::config::server_shape(), monolock::cli::shape()}) {
            for (const writer& each : writers) {
                if (words[0] == each.name && words[1] == program.name) {
                    return std::cout << each.write(program) << std::flush ? 0 : 1;
                }
            }
        }
    }
    std::cerr << "usage: completions bash|zsh|fish|list monolock|monolockctl\n";
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::span<const char* const> words{argv, static_cast<std::size_t>(argc)};
        return main_of(words.subspan(argc > 0 ? 1 : 0));
    } catch (const std::exception& failure) {
        std::cerr << "completions: " << failure.what() << '\n';
        return 1;
    }
}
