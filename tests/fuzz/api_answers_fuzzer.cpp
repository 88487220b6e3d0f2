// Whatever a server answers monolockctl: what the reader of an answer accepts can be shown, in as
// many lines as it should have and none of them forged; all else is a bad answer and nothing worse.
// And a document printed on one line reads the same again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/admin/admin_error.hpp"
#include "cli/admin/api_answers.hpp"
#include "cli/admin/lock_text.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace cli = monolock::cli;
namespace fuzz = monolock::fuzz;
using fuzz::require;

// So many lines, each with its end.
void require_lines(std::string_view text, std::size_t count) {
    std::size_t lines = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        require(end != std::string_view::npos);
        require(fuzz::is_one_line(text.substr(0, end)));
        text.remove_prefix(end + 1);
        ++lines;
    }
    require(lines == count);
}

void show(const cli::lock_facts& lock) {
    const std::string shown = cli::lock_text(lock, false);
    require_lines(shown, static_cast<std::size_t>(std::ranges::count(shown, '\n')));
    require_lines(cli::held_text(lock), 1);
    require_lines(cli::owner_and_place(lock, {"a", lock.name}) + "\n", 1);
    for (const auto& waiter : lock.waiters) {
        require_lines(cli::describe(waiter) + "\n", 1);
    }
    if (lock.holder) {
        require_lines(cli::describe(*lock.holder) + "\n", 1);
    }
}

void read(unsigned kind, const cli::json& document) {
    switch (kind) {
        case 0:
            require_lines(cli::describe(cli::holder_from(document)) + "\n", 1);
            break;
        case 1:
            require_lines(cli::describe(cli::waiter_from(document)) + "\n", 1);
            break;
        case 2:
            show(cli::lock_from(document));
            break;
        case 3: {
            const std::vector<cli::lock_facts> locks = cli::locks_from(document, "a");
            require(
                std::ranges::is_sorted(locks, std::ranges::less_equal{}, &cli::lock_facts::name));
            if (!locks.empty()) {
                require(locks.front().name > "a");
                require_lines(cli::locks_text(locks, false), locks.size() + 1);
            }
            break;
        }
        case 4:
            if (const auto next = cli::next_page_from(document)) {
                require(next->starts_with("/api/locks?") && fuzz::is_one_line(*next));
                require(next->find(' ') == std::string::npos);
            }
            break;
        case 5:
            require_lines(cli::change_text(cli::change_from(document), false), 1);
            break;
        case 6:
            static_cast<void>(cli::lost_from(document));
            break;
        case 7: {
            cli::check_info(document);
            const std::string shown = cli::info_text(document);
            require_lines(shown, static_cast<std::size_t>(std::ranges::count(shown, '\n')));
            require_lines(cli::summary(document) + "\n", 1);
            break;
        }
    }
}

}  // namespace

// The first byte says what was asked for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::choices input{data, size};
    const unsigned kind = input.next() % 8U;
    try {
        const cli::json document = cli::parse_object(input.rest());
        require(document.is_object());
        const std::string line = cli::to_line(document);
        require_lines(line, 1);
        require(std::ranges::all_of(line, [](char letter) { return letter > '\0'; }));
        require(cli::parse_object(line) == document);
        read(kind, document);
    } catch (const cli::bad_answer& why) {
        require(fuzz::is_one_line(why.what()));
    }
    return 0;
}
