#include "core/fact.hpp"

#include <ostream>

namespace monolock::core {

namespace {

struct printer {
    std::ostream& out;

    void operator()(const queued& what) const { out << "queued(#" << what.who->id().value << ")"; }
    void operator()(const granted& what) const {
        out << "granted(#" << what.who->id().value << ", token " << what.token.value << ", waited "
            << what.waited.count() << " ns)";
    }
    void operator()(const acknowledged& what) const {
        out << "acknowledged(#" << what.who->id().value << ", " << to_string(what.state)
            << ", token " << what.token.value << ")";
    }
    void operator()(const ended& what) const {
        out << "ended(#" << what.who->id().value << ", " << to_string(what.why) << ", was "
            << to_string(what.was) << " for " << what.lasted.count() << " ns)";
    }
};

}  // namespace

std::string_view to_string(session_state state) noexcept {
    switch (state) {
        case session_state::fresh:
            return "fresh";
        case session_state::waiting:
            return "waiting";
        case session_state::owning:
            return "owning";
        case session_state::gone:
            return "gone";
    }
    return "?";
}

std::string_view to_string(end_reason reason) noexcept {
    switch (reason) {
        case end_reason::graceful:
            return "graceful";
        case end_reason::expired:
            return "expired";
        case end_reason::io_timeout:
            return "io_timeout";
        case end_reason::force:
            return "force";
    }
    return "?";
}

std::ostream& operator<<(std::ostream& out, const fact& what) {
    std::visit(printer{out}, what);
    return out;
}

}  // namespace monolock::core
