#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace monolock::cli {

// An event as a server sends it: "event: KIND", "data: TEXT" and an empty line.
struct server_event {
    std::string kind = "message";
    std::string data;
};

// Takes a text/event-stream apart, however it is cut. Pure. Comments, ids and retry times are
// passed over; several lines of data are joined by newlines.
class event_splitter {
public:
    void feed(std::string_view text) { text_ += text; }

    // The next event that is whole.
    [[nodiscard]] std::optional<server_event> next();

    // What waits for its end.
    [[nodiscard]] std::size_t pending_bytes() const noexcept { return text_.size(); }

private:
    std::string text_;
};

}  // namespace monolock::cli
