#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/store.hpp"
#include "etcd/messages/answers.hpp"
#include "etcd/messages/calls.hpp"

namespace monolock::etcd {

// Makes events of the stream of a watch on `active`, which comes in pieces of any size: a line of
// JSON for each message. Begins `opening`, is `running` once etcd said that it watches, and ends
// `broken`, with one watch_broken, at the first thing that is not as it should be: then nothing
// more is read. Events are told in the order of the store, each once, none from before `from`. (One
// of the revision before it belongs to the stream, see watch_call, and is passed over.)
class watch_reader {
public:
    enum class state : std::uint8_t { opening, running, broken };

    watch_reader(key_names keys, coordination::revision from);

    // Appends what the bytes complete.
    void take(std::string_view bytes, std::vector<coordination::watch_event>& out);
    // The stream ended. A last line may lack its newline, as an error's does.
    void end(std::vector<coordination::watch_event>& out);
    // For what the stream itself does not say: that it is silent, say. Does nothing once broken.
    void break_off(const std::string& why, std::vector<coordination::watch_event>& out);

    [[nodiscard]] state where() const noexcept { return state_; }
    // Of the endpoint, once broken.
    [[nodiscard]] verdict of_endpoint() const noexcept { return of_endpoint_; }

private:
    void take_line(std::string_view line, std::vector<coordination::watch_event>& out);

    key_names keys_;
    coordination::revision from_;
    coordination::revision next_;  // no event may be older
    std::string line_;             // the beginning of one, at most answer_bytes_max bytes
    state state_ = state::opening;
    verdict of_endpoint_ = verdict::move_on;
};

}  // namespace monolock::etcd
