// A stream of server-sent events: in pieces it means what it means whole, and that is what its
// blocks of lines say, taken one after the other.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/admin/event_splitter.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace fuzz = monolock::fuzz;
using fuzz::require;
using monolock::cli::server_event;

// Hands out the events of the text, and what is left behind the last empty line.
class oracle {
public:
    explicit oracle(std::string_view text) : left_{text} {}

    std::optional<server_event> next() {
        for (;;) {
            const std::size_t end = left_.find("\n\n");
            if (end == std::string_view::npos) {
                return std::nullopt;
            }
            server_event made;
            bool any = false;
            fuzz::for_each_part(left_.substr(0, end), '\n', [&](std::string_view line) {
                if (const auto kind = behind("event:", line)) {
                    made.kind = *kind;
                } else if (const auto data = behind("data:", line)) {
                    made.data.append(any ? "\n" : "").append(*data);
                    any = true;
                }
            });
            left_.remove_prefix(end + 2);
            if (any) {
                return made;
            }
        }
    }
    [[nodiscard]] std::size_t left() const { return left_.size(); }

private:
    static std::optional<std::string_view> behind(std::string_view field, std::string_view line) {
        if (line.substr(0, field.size()) != field) {
            return std::nullopt;
        }
        const bool blank = line.size() > field.size() && line[field.size()] == ' ';
        return line.substr(field.size() + (blank ? 1 : 0));
    }

    std::string_view left_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::cut_input input{data, size};
    oracle expected{input.text()};
    monolock::cli::event_splitter splitter;
    input.feed(true, [&](fuzz::bytes piece) {
        splitter.feed(fuzz::cut_input::text_of(piece));
        while (const auto event = splitter.next()) {
            const auto same = expected.next();
            require(same && same->kind == event->kind && same->data == event->data);
        }
        return true;
    });
    require(!expected.next() && splitter.pending_bytes() == expected.left());
    return 0;
}
