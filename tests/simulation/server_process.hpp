#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/session_engine.hpp"
#include "protocol/frames.hpp"
#include "simulation/network.hpp"
#include "simulation/rules.hpp"

namespace monolock::simulation {

// The machine under the server: its clocks survive the process.
struct server_machine {
    drifting_clock steady{nanoseconds{0}, 1000};
    std::int64_t wall_ms_at_start = 0;
    std::int64_t wall_steps_ms = 0;

    [[nodiscard]] std::int64_t wall_ms(sim_time now) const noexcept {
        return wall_ms_at_start + wall_steps_ms + now.count() / 1'000'000;
    }
};

class guest;          // a connection that was accepted
class claim_session;  // and after its ACQUIRE was admitted

// One server process: the real engine behind a shell that accepts, reads the ACQUIRE within the I/O
// timeout, lingers after an ERROR, keeps one timer and calls judge(). The shell does in simulated
// time what the server's does in real time, one turn of its loop after the other, and may be
// stopped between any two system calls. One shard; the move of a claim to the shard of its name is
// a posted message here too, and the two have adopted the access rules of one generation or of two.
class server_process final : core::clock_port, core::observer_port, core::token_source {
public:
    server_process(context& world, rules& checks, const server_machine& machine, unsigned number,
                   const access_file& access);
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;
    ~server_process() override;

    // ---- the outside. May be called while a turn is stopped.
    void connection_arrives(connection& link);
    void stop_for(sim_time pause);  // SIGSTOP
    void crash();                   // its kernel closes everything
    void power_cut(sim_time until);
    void terminate();                        // SIGTERM
    void reload(const access_file& access);  // SIGHUP
    void close_some_session();               // the operator does

    [[nodiscard]] bool alive() const noexcept { return alive_; }
    [[nodiscard]] bool accepts() const noexcept { return alive_ && !terminating_; }
    // Nobody is left to whom the process owes anything; it may exit.
    [[nodiscard]] bool finished() const noexcept { return alive_ && terminating_ && idle(); }
    [[nodiscard]] bool idle() const noexcept;
    // Connections that are open at this end.
    [[nodiscard]] const std::vector<connection*>& links() const noexcept { return links_; }
    // Not in the midst of a call of the engine.
    [[nodiscard]] const core::session_engine* engine_at_rest() const noexcept {
        return busy_ || !alive_ ? nullptr : &engine_;
    }

private:
    friend class guest;
    friend class claim_session;

    // ---- ports of the engine
    core::time_point now() noexcept override;
    void on_fact(const core::fact& what) override;
    void on_error_due(const core::connected_session& who, protocol::error_code code,
                      std::string_view reason) override;
    core::fencing_token next() noexcept override;

    [[nodiscard]] const core::session_engine::options& engine_settings() const noexcept {
        return settings_;
    }
    [[nodiscard]] nanoseconds clock() const noexcept;
    // A point at which the scheduler may take the processor away.
    void may_stop();
    void stop_here(sim_time pause);
    void note_frame(const core::fact& what);
    [[nodiscard]] guest& guest_of(const core::session& who) const;
    [[nodiscard]] bool stopped_since(nanoseconds reading) const noexcept;

    void schedule_turn(sim_time delay);
    void turn();
    void serve_ready();
    void serve(guest& who);
    void accept_waiting();
    void admit_moved();
    void judge_due();
    void shut_down_some();
    void obey_operator();
    void adopt_access();
    void adopt_and_sweep(const access_file& access);
    void look_for_unread() const;
    void arm_timer();
    void bury();

    template <typename Call>
    void engine_call(const Call& call) {
        call();
        if (alive_) {
            rules_->call_returned();
        }
    }

    context* world_;
    rules* rules_;
    const server_machine* machine_;
    unsigned number_;
    core::session_engine::options settings_;
    core::session_engine engine_;

    bool alive_ = true;
    bool terminating_ = false;
    bool busy_ = false;  // in a turn, perhaps stopped in it
    bool turn_scheduled_ = false;
    sim_time stopped_until_{0};
    sim_time last_stop_end_{-1};
    sim_time timer_at_ = never;
    bool judge_due_ = false;
    int operator_wants_ = 0;
    nanoseconds last_reading_{0};
    sim_time last_reading_real_{0};
    // The next reading tells when these were heard, or blocked, as the engine sees it.
    claim_session* heard_ = nullptr;
    claim_session* blocked_ = nullptr;
    bool withheld_ = false;
    core::fencing_token last_token_;

    // The shard that reads an ACQUIRE and the one of its lock: each adopts rules in a turn of its
    // own, in the order in which they were made.
    access_file access_;
    access_file home_access_;
    std::deque<access_file> to_adopt_;
    std::deque<access_file> to_adopt_at_home_;

    std::deque<connection*> waiting_for_accept_;
    std::map<std::uint32_t, std::unique_ptr<guest>> guests_;  // by connection
    std::vector<std::uint32_t> ready_;
    std::deque<std::uint32_t> moved_;  // claims whose move to their shard is done
    std::vector<connection*> links_;
};

}  // namespace monolock::simulation
