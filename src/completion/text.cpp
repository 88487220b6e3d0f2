#include "completion/text.hpp"

namespace monolock::completion {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

std::string quoted_for_shell(std::string_view text) {
    return "'" + replaced(std::string{text}, "'", "'\\''") + "'";
}

}  // namespace monolock::completion
