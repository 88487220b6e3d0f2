#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/assert.hpp"
#include "core/session_engine.hpp"
#include "support/journal.hpp"
#include "support/scripted_ports.hpp"
#include "support/scripted_session.hpp"

namespace monolock::support {

// A session engine between scripted connections, a scripted clock and a recording observer. Each
// event is played to its end, then the lock table's invariants are checked.
class engine_stage {
public:
    struct claim {
        std::string name = "nightly";
        std::chrono::milliseconds lease{10'000};
        std::string rest{};                             // bytes that came with the ACQUIRE
        std::optional<core::time_point> received_at{};  // absent: now
    };

    explicit engine_stage(core::nanoseconds io_timeout = std::chrono::seconds{5})
        : observer_{log_},
          engine_{tokens_, clock_, observer_, {.io_timeout = io_timeout, .mandate = &mandate_}} {}
    engine_stage(const engine_stage&) = delete;
    engine_stage& operator=(const engine_stage&) = delete;
    ~engine_stage() {
        engine_.withhold_grants();
        while (engine_.close_all(64, protocol::error_code::server_shutting_down)) {
        }
    }

    [[nodiscard]] core::session_engine& engine() noexcept { return engine_; }
    [[nodiscard]] scripted_clock& clock() noexcept { return clock_; }
    [[nodiscard]] scripted_tokens& tokens() noexcept { return tokens_; }
    [[nodiscard]] scripted_mandate& mandate() noexcept { return mandate_; }
    [[nodiscard]] roster& sessions() noexcept { return sessions_; }
    [[nodiscard]] scripted_session& at(std::uint64_t id) { return *sessions_.at(id); }
    [[nodiscard]] bool has(std::uint64_t id) const { return sessions_.contains(id); }

    [[nodiscard]] lines wire() { return log_.take(journal::kind::wire); }
    [[nodiscard]] lines facts() { return log_.take(journal::kind::fact); }
    [[nodiscard]] lines everything() { return log_.take_all(); }
    void forget() { static_cast<void>(log_.take_all()); }

    // A connection that has claimed nothing yet.
    scripted_session& connects(std::uint64_t id) {
        auto made = std::make_unique<scripted_session>(core::session_id{id}, log_, sessions_);
        return *sessions_.emplace(id, std::move(made)).first->second;
    }

    void claims(std::uint64_t id, const claim& what) {
        engine_.admit(
            at(id), {.lease_ms = static_cast<std::uint32_t>(what.lease.count()), .name = what.name},
            hasher_(what.name), what.received_at.value_or(clock_.now()),
            std::as_bytes(std::span{what.rest}));
        check();
    }

    void enters(std::uint64_t id, const claim& what) {
        connects(id);
        claims(id, what);
    }
    void enters(std::uint64_t id) { enters(id, claim{}); }

    // Bytes arrive, and the engine is woken until it has read them or no longer wants to.
    void says(std::uint64_t id, std::string bytes) {
        at(id).arrives(std::move(bytes));
        while (has(id) && at(id).has_input() && at(id).awaits_readable()) {
            wake_reader(id);
        }
    }
    void beats(std::uint64_t id) { says(id, "\x02"); }

    void closes(std::uint64_t id) { input_ends(id, core::receive_status::peer_closed); }
    void falls_silent(std::uint64_t id) { input_ends(id, core::receive_status::silence); }

    void makes_room(std::uint64_t id, std::size_t bytes) {
        at(id).takes(bytes);
        wake_writer(id);
    }

    // One wake-up each, if the engine asked for it.
    void wake_reader(std::uint64_t id) {
        if (at(id).take_readable_request()) {
            engine_.readable(at(id));
        }
        check();
    }
    void wake_writer(std::uint64_t id) {
        if (at(id).take_writable_request()) {
            engine_.writable(at(id));
        }
        check();
    }

    void passes(core::nanoseconds time) noexcept { clock_.advance(time); }

    void judge() {
        while (engine_.judge(1)) {
            check();
        }
        check();
    }
    void passes_and_is_judged(core::nanoseconds time) {
        passes(time);
        judge();
    }

    void check() const { engine_.table().check_invariants(); }

    [[nodiscard]] core::name_hash hash_of(std::string_view name) const { return hasher_(name); }

private:
    void input_ends(std::uint64_t id, core::receive_status how) {
        at(id).ends_with(how);
        wake_reader(id);
    }

    journal log_;
    roster sessions_;
    scripted_clock clock_;
    scripted_tokens tokens_;
    scripted_mandate mandate_;
    recording_observer observer_;
    core::name_hasher hasher_{core::name_hasher::key{}};
    core::session_engine engine_;
};

}  // namespace monolock::support
