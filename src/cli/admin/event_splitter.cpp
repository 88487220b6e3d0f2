#include "cli/admin/event_splitter.hpp"

namespace monolock::cli {

namespace {

// What stands behind "FIELD:" and one blank, if the line has that field.
std::optional<std::string_view> value_of(std::string_view line, std::string_view field) {
    if (!line.starts_with(field) || line.substr(field.size(), 1) != ":") {
        return std::nullopt;
    }
    line.remove_prefix(field.size() + 1);
    return line.starts_with(' ') ? line.substr(1) : line;
}

std::optional<server_event> event_of(std::string_view block) {
    server_event made;
    bool has_data = false;
    while (!block.empty()) {
        const std::size_t end = block.find('\n');
        std::string_view line = block.substr(0, end);
        block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
        if (const auto kind = value_of(line, "event")) {
            made.kind = *kind;
        } else if (const auto data = value_of(line, "data")) {
            made.data += has_data ? "\n" : "";
            made.data += *data;
            has_data = true;
        }
    }
    return has_data ? std::optional{std::move(made)} : std::nullopt;
}

}  // namespace

std::optional<server_event> event_splitter::next() {
    while (true) {
        const std::size_t end = text_.find("\n\n");
        if (end == std::string::npos) {
            return std::nullopt;
        }
        auto made = event_of(std::string_view{text_}.substr(0, end));
        text_.erase(0, end + 2);
        if (made) {
            return made;
        }
    }
}

}  // namespace monolock::cli
