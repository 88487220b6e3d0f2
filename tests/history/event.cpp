#include "history/event.hpp"

namespace monolock::history {

std::string_view to_string(kind what) noexcept {
    switch (what) {
        case kind::ask:
            return "ask";
        case kind::waiting:
            return "waiting";
        case kind::grant:
            return "grant";
        case kind::confirmed:
            return "confirmed";
        case kind::act:
            return "act";
        case kind::loss:
            return "loss";
        case kind::end:
            return "end";
        case kind::closed:
            return "closed";
        case kind::near:
            return "near";
        case kind::paused:
            return "paused";
        case kind::resumed:
            return "resumed";
        case kind::killed:
            return "killed";
        case kind::silent:
            return "silent";
        case kind::heard:
            return "heard";
        case kind::resetting:
            return "resetting";
        case kind::reset_over:
            return "reset_over";
        case kind::forcing:
            return "forcing";
        case kind::forced_over:
            return "forced_over";
        case kind::server_started:
            return "server_started";
        case kind::server_down:
            return "server_down";
        case kind::server_paused:
            return "server_paused";
        case kind::server_serves:
            return "server_serves";
        case kind::calm:
            return "calm";
        case kind::finish:
            return "finish";
    }
    return "?";
}

std::string_view to_string(reason why) noexcept {
    switch (why) {
        case reason::none:
            return "none";
        case reason::unreachable:
            return "unreachable";
        case reason::silence:
            return "silence";
        case reason::closed:
            return "closed";
        case reason::shutdown:
            return "shutdown";
        case reason::administrator:
            return "administrator";
        case reason::refused:
            return "refused";
        case reason::violation:
            return "violation";
    }
    return "?";
}

}  // namespace monolock::history
