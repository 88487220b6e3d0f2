#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fact.hpp"
#include "core/session_port.hpp"

namespace monolock::support {

using lines = std::vector<std::string>;

// What a test sees, a line for each happening, in order. Lines compare and print, so that a failure
// reads as a story.
class journal {
public:
    enum class kind {
        wire,  // what the peer sees and what becomes of its connection: "#2 <- WAITING"
        fact,  // what the observer is told: "queued(#2)"
    };

    void add(kind what, std::string text) { entries_.emplace_back(what, std::move(text)); }

    // The lines of one kind since they were taken last; the others stay.
    [[nodiscard]] lines take(kind what) {
        lines taken;
        std::vector<entry> left;
        for (entry& one : entries_) {
            if (one.first == what) {
                taken.push_back(std::move(one.second));
            } else {
                left.push_back(std::move(one));
            }
        }
        entries_ = std::move(left);
        return taken;
    }

    // All of them, in the order in which they happened.
    [[nodiscard]] lines take_all() {
        lines taken;
        for (entry& one : std::exchange(entries_, {})) {
            taken.push_back(std::move(one.second));
        }
        return taken;
    }

private:
    using entry = std::pair<kind, std::string>;
    std::vector<entry> entries_;
};

inline std::string text_of(const core::fact& what) {
    std::ostringstream text;
    text << what;
    return std::move(text).str();
}

inline lines texts_of(const core::fact_list& facts) {
    lines texts;
    for (const core::fact& what : facts) {
        texts.push_back(text_of(what));
    }
    return texts;
}

inline std::string error_text(protocol::error_code code, std::string_view reason) {
    std::ostringstream text;
    text << "0x" << (static_cast<unsigned>(code) < 0x10 ? "0" : "") << std::hex
         << static_cast<unsigned>(code) << " '" << reason << "'";
    return std::move(text).str();
}

inline std::string number(core::session_id id) {
    return "#" + std::to_string(id.value);
}

// An observer that writes down what it is told.
class recording_observer : public core::observer_port {
public:
    explicit recording_observer(journal& log) noexcept : log_{&log} {}

    void on_fact(const core::fact& what) override { log_->add(journal::kind::fact, text_of(what)); }

    void on_error_due(const core::connected_session& who, protocol::error_code code,
                      std::string_view reason) override {
        log_->add(journal::kind::fact,
                  "error_due(" + number(who.id()) + ", " + error_text(code, reason) + ")");
    }

private:
    journal* log_;
};

}  // namespace monolock::support
