#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/name_hash.hpp"
#include "core/time.hpp"
#include "core/token_source.hpp"

namespace monolock::core {

struct named_lock;

// A number unique in the process, for people and the admin API.
struct session_id {
    std::uint64_t value = 0;
    friend bool operator==(const session_id&, const session_id&) = default;
};

// fresh -> waiting -> owning -> gone, or with waiting left out. Never back.
enum class session_state : std::uint8_t { fresh, waiting, owning, gone };

// How a session ends; the words are those of metrics and audit.
enum class end_reason : std::uint8_t { graceful, expired, io_timeout, force };

[[nodiscard]] std::string_view to_string(session_state state) noexcept;
[[nodiscard]] std::string_view to_string(end_reason reason) noexcept;

// One connection after its ACQUIRE was admitted, as far as the lock table is concerned. Whoever
// makes it keeps it in place and alive from lock_table::acquire until it is gone. Only the table
// writes its fields.
class session {
public:
    explicit session(session_id id) noexcept : id_{id} {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() = default;

    [[nodiscard]] session_id id() const noexcept { return id_; }
    [[nodiscard]] session_state state() const noexcept { return state_; }
    // Zero until granted.
    [[nodiscard]] fencing_token token() const noexcept { return token_; }
    [[nodiscard]] std::chrono::milliseconds lease() const noexcept {
        return std::chrono::milliseconds{lease_ms_};
    }
    // When its last message was received.
    [[nodiscard]] time_point last_seen() const noexcept { return last_seen_; }
    // When its ACQUIRE was handled while it waits, when it was granted once it owns.
    [[nodiscard]] time_point since() const noexcept { return since_; }
    // Valid from acquire to gone.
    [[nodiscard]] std::string_view lock_name() const noexcept;
    [[nodiscard]] name_hash lock_hash() const noexcept;

private:
    friend class lock_table;
    friend struct named_lock;
    friend struct armed_deadline_of;

    // The session is expired at every reading later than this.
    [[nodiscard]] time_point deadline() const noexcept { return last_seen_ + lease(); }

    using queue_hook = boost::intrusive::list_member_hook<>;
    using deadline_hook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

    queue_hook queue_hook_;        // in the lock's queue while waiting
    deadline_hook deadline_hook_;  // in the table's deadlines from acquire to gone
    named_lock* lock_ = nullptr;
    time_point last_seen_;
    time_point armed_;  // where the deadline hook stands: at or before deadline()
    time_point since_;
    fencing_token token_;
    session_id id_;
    std::uint32_t lease_ms_ = 0;
    session_state state_ = session_state::fresh;
};

}  // namespace monolock::core
