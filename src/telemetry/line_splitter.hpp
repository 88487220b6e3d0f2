#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace monolock::telemetry {

// Cuts a stream into its lines, however the stream itself is cut. Keeps the beginning of one line
// at the most.
class line_splitter {
public:
    // A longer line is handed out in pieces of this size: no line of ours is as long, and memory
    // stays bounded whatever the file is.
    static constexpr std::size_t line_bytes_max = std::size_t{1} << 20U;

    // Calls `each` with each line that the bytes complete, without its newline. It returns whether
    // to go on; feed() returns what it returned last.
    template <class Each>
    bool feed(std::string_view bytes, Each&& each) {
        while (!bytes.empty()) {
            const std::size_t end = bytes.find('\n');
            if (end == std::string_view::npos) {
                rest_ += bytes;
                if (rest_.size() < line_bytes_max) {
                    return true;
                }
                const std::string piece = std::exchange(rest_, {});
                return each(std::string_view{piece});
            }
            const bool go_on =
                rest_.empty() ? each(bytes.substr(0, end)) : complete(bytes, end, each);
            if (!go_on) {
                return false;
            }
            bytes.remove_prefix(end + 1);
        }
        return true;
    }

    // What came after the last newline.
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
    void drop_rest() noexcept { rest_.clear(); }

private:
    template <class Each>
    bool complete(std::string_view bytes, std::size_t end, Each& each) {
        rest_ += bytes.substr(0, end);
        const bool go_on = each(std::string_view{rest_});
        rest_.clear();
        return go_on;
    }

    std::string rest_;
};

}  // namespace monolock::telemetry
