// The verifier against a model that remembers everything: events that are mostly as they should be
// and sometimes are not. Both must find the same line wrong, or none.

#include <map>
#include <set>
#include <string>

#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"
#include "telemetry/audit_verifier.hpp"

namespace {

namespace telemetry = monolock::telemetry;
using monolock::fuzz::choices;
using monolock::fuzz::require;

struct event {
    telemetry::audit_event what;
    std::string lock;
    std::string from;
};

// The rules in plain words, over the whole history.
class model {
public:
    struct owner {
        std::uint64_t token = 0;
        std::string from;
        bool forced = false;
    };

    [[nodiscard]] bool allows(const event& next) const {
        const auto at = owners_.find(next.lock);
        const owner* const held = at == owners_.end() ? nullptr : &at->second;
        if (const auto* const granted = std::get_if<telemetry::audit_granted>(&next.what)) {
            const std::uint64_t token = granted->token.value;
            const auto last = last_tokens_.find(next.lock);
            return held == nullptr && token > 0 && !tokens_.contains(token) &&
                   (last == last_tokens_.end() || token > last->second);
        }
        if (const auto* const released = std::get_if<telemetry::audit_released>(&next.what)) {
            return held != nullptr && held->token == released->token.value &&
                   held->from == next.from && held->forced == (released->reason == "force");
        }
        if (const auto* const forced = std::get_if<telemetry::audit_force_release>(&next.what)) {
            return held != nullptr && held->token == forced->token.value && held->from == next.from;
        }
        return true;
    }

    void apply(const event& next) {
        if (const auto* const granted = std::get_if<telemetry::audit_granted>(&next.what)) {
            const std::uint64_t token = granted->token.value;
            owners_[next.lock] = {.token = token, .from = next.from, .forced = false};
            last_tokens_[next.lock] = token;
            tokens_.insert(token);
        } else if (std::holds_alternative<telemetry::audit_released>(next.what)) {
            owners_.erase(next.lock);
        } else if (std::holds_alternative<telemetry::audit_force_release>(next.what)) {
            owners_[next.lock].forced = true;
        }
    }

    [[nodiscard]] const owner* owner_of(const std::string& lock) const {
        const auto at = owners_.find(lock);
        return at == owners_.end() ? nullptr : &at->second;
    }
    [[nodiscard]] std::size_t held() const { return owners_.size(); }
    [[nodiscard]] std::uint64_t largest() const { return tokens_.empty() ? 0 : *tokens_.rbegin(); }

private:
    std::map<std::string, owner> owners_;
    std::map<std::string, std::uint64_t> last_tokens_;
    std::set<std::uint64_t> tokens_;
};

// What would be right next for the lock; then, for one choice in eight, something of it is changed.
event next_event(choices& input, const model& so_far) {
    event next{.what = telemetry::audit_denied{},
               .lock = "lock-" + std::to_string(input.next() % 3),
               .from = "client-" + std::to_string(input.next() % 3)};
    std::uint64_t token = so_far.largest() + 1 + input.next() % 3;
    const model::owner* const owner = so_far.owner_of(next.lock);
    const std::uint8_t twist = input.next();
    if (owner != nullptr) {
        next.from = owner->from;
        token = owner->token;
    }
    if (twist < 32) {
        token = twist % 2 == 0 ? token : twist;
        next.from = twist % 3 == 0 ? next.from : "stranger";
    }
    const std::uint8_t kind = input.next() % 8;
    const bool as_it_should_be = twist >= 16;
    if (as_it_should_be ? owner == nullptr : kind % 2 == 0) {
        next.what = telemetry::audit_granted{.token = {token}};
    } else if (kind == 1) {
        next.what = telemetry::audit_force_release{.token = {token}};
    } else if (kind != 3) {
        const bool forced = owner != nullptr && owner->forced;
        next.what =
            telemetry::audit_released{.token = {token},
                                      .held = {},
                                      .reason = forced != (twist % 16 == 7) ? "force" : "expired"};
    }
    return next;
}

std::string line_of(const event& what) {
    std::string line;
    append_audit_line(line, telemetry::audit_record{.time = {},
                                                    .lock = what.lock,
                                                    .identity = {},
                                                    .remote_addr = what.from,
                                                    .event = what.what});
    line.pop_back();
    return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices input{data, size};
    model truth;
    telemetry::audit_verifier verifier{{}};
    verifier.begin_file("log");
    while (input.any()) {
        const event next = next_event(input, truth);
        const bool right = truth.allows(next);
        require(verifier.take(line_of(next)).has_value() != right);
        if (!right) {
            return 0;
        }
        truth.apply(next);
        require(verifier.result().held == truth.held());
    }
    return 0;
}
