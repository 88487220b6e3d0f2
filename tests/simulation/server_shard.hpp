#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/session_engine.hpp"
#include "simulation/network.hpp"
#include "simulation/rules.hpp"
#include "simulation/server_process.hpp"

namespace monolock::simulation {

class guest;          // a connection that was accepted
class claim_session;  // and after its ACQUIRE was admitted

// One shard of a server process: the real engine with its table behind a shell that accepts, reads
// the ACQUIRE within the I/O timeout, hands the claim over to the shard of its name, lingers after
// an ERROR, keeps one timer and calls judge(). It does in simulated time what src/server/shard.cpp
// does in real time, one turn of its loop after the other, and may be stopped between any two
// system calls, whatever the other shards do. They reach each other by posted messages alone.
class server_shard final : core::clock_port,
                           core::observer_port,
                           core::token_source,
                           core::mandate_port {
public:
    // What others post; handled in the order of posting.
    struct claim_moves {
        explicit claim_moves(std::unique_ptr<guest> claim) noexcept;
        claim_moves(claim_moves&&) noexcept;
        claim_moves& operator=(claim_moves&&) noexcept;
        ~claim_moves();  // where guest is known
        std::unique_ptr<guest> who;
    };
    struct rules_change {
        access_file access;
    };
    struct question {
        std::function<void(server_shard&)> ask;
    };
    struct drain_begins {};
    struct drain_finishes {};
    struct grants_retried {
        std::size_t left = std::numeric_limits<std::size_t>::max();  // of those that were idle
    };
    using message = std::variant<claim_moves, rules_change, question, drain_begins, drain_finishes,
                                 grants_retried>;

    server_shard(server_process& process, int number, access_file access);
    server_shard(const server_shard&) = delete;
    server_shard& operator=(const server_shard&) = delete;
    ~server_shard() override;

    // ---- from any thread
    void post(message what);
    bool stop_for(sim_time pause);  // false if it is stopped already
    // The backlog is not empty. Says whether this shard was asleep and will look.
    bool wake_for_backlog();

    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool idle() const noexcept;
    [[nodiscard]] bool drained() const noexcept { return stage_ == stage::draining && idle(); }
    // Since when nothing stopped it; never if it is stopped now.
    [[nodiscard]] sim_time runs_since() const noexcept;
    // To check its table if that may have changed since; not while it is in the midst of a turn.
    [[nodiscard]] const core::session_engine* changed_at_rest() noexcept;

    // ---- for questions, in this shard's turn
    [[nodiscard]] core::session_engine& engine() noexcept { return engine_; }
    // An operator ends a session with ERROR 0x02.
    void end_by_operator(core::connected_session& who);

private:
    friend class server_process;
    friend class guest;
    friend class claim_session;

    enum class stage : std::uint8_t { serving, refusing, draining };

    // ---- ports of the engine
    core::time_point now() noexcept override;
    void on_fact(const core::fact& what) override;
    void on_error_due(const core::connected_session& who, protocol::error_code code,
                      std::string_view reason) override;
    std::optional<core::fencing_token> next(std::chrono::milliseconds lease) noexcept override;
    bool in_force() noexcept override;

    [[nodiscard]] bool alive() const noexcept { return process_->alive(); }
    [[nodiscard]] nanoseconds clock() const noexcept { return process_->clock(); }
    [[nodiscard]] const core::session_engine::options& settings() const noexcept {
        return process_->settings_;
    }
    // Whether the mandate is in force; the process may be dead by then.
    [[nodiscard]] bool may_act();
    // A point at which the scheduler may take the processor away.
    void may_stop();
    void stop_here(sim_time pause);
    void note_frame(const core::fact& what);
    void check_end(const core::ended& what);
    [[nodiscard]] guest& guest_of(const core::session& who) const;
    // A reading of that moment, or zero.
    [[nodiscard]] nanoseconds last_stop_end() const noexcept;

    void schedule_turn(sim_time delay);
    void turn();
    void turn_ends();
    void serve_ready();
    void judge_due();
    void look_for_unread() const;
    void look_for_unread(const guest& who) const;
    void arm_timer();
    void bury();

    // ---- messages
    void take_messages();
    void take(claim_moves& what);
    void take(rules_change& what);
    void take(question& what);
    void take(drain_begins& what);
    void take(drain_finishes& what);
    void take(grants_retried& what);
    void hand_over(guest& who, server_shard& home);
    void close_some_sessions();

    // ---- accepting
    [[nodiscard]] bool accepts() const noexcept {
        return listening_ && pause_ == accept_pause::none;
    }
    void accept_some();
    [[nodiscard]] bool accept_one();
    enum class accept_pause : std::uint8_t { none, for_a_slot, for_a_while };
    void pause_accepting(accept_pause why);
    void stop_listening();
    void refuse_at_once(connection& link);

    template <typename Call>
    void engine_call(const Call& call) {
        changed_ = true;
        call();
        changed_ = true;  // others may have looked at it while it was stopped
        if (alive()) {
            rules_->call_returned(number_);
        }
    }

    context* world_;
    rules* rules_;
    server_process* process_;
    int number_;
    actor self_;
    core::session_engine engine_;

    stage stage_ = stage::serving;
    bool busy_ = false;  // in a turn, perhaps stopped in it
    bool changed_ = true;
    bool turn_scheduled_ = false;
    sim_time stopped_until_{0};
    sim_time last_stop_end_{-1};
    sim_time timer_at_ = never;
    bool judge_due_ = false;
    nanoseconds last_reading_{0};
    sim_time last_reading_real_{0};
    bool engine_may_act_ = true;  // as it saw last
    // The next reading tells when these were heard, or blocked, as the engine sees it.
    claim_session* heard_ = nullptr;
    claim_session* blocked_ = nullptr;

    access_file access_;
    std::deque<message> inbox_;
    bool listening_ = true;
    accept_pause pause_ = accept_pause::none;
    unsigned pauses_ = 0;  // so that the timer of an earlier one ends no later one

    std::map<std::uint32_t, std::unique_ptr<guest>> guests_;  // by connection
    std::vector<std::uint32_t> ready_;
};

}  // namespace monolock::simulation
