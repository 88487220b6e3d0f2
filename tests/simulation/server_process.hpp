#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/name_hash.hpp"
#include "core/session_engine.hpp"
#include "simulation/access.hpp"
#include "simulation/descriptors.hpp"
#include "simulation/network.hpp"
#include "simulation/rules.hpp"

namespace monolock::simulation {

class server_shard;

// The machine under the server: its clocks survive the process.
struct server_machine {
    drifting_clock steady{nanoseconds{0}, 1000};
    std::int64_t wall_ms_at_start = 0;
    std::int64_t wall_steps_ms = 0;

    [[nodiscard]] std::int64_t wall_ms(sim_time now) const noexcept {
        return wall_ms_at_start + wall_steps_ms + now.count() / 1'000'000;
    }
};

// One server process: what its shards share (the backlog of the listening socket, the descriptors,
// the source of tokens, the key of the names' hash), and the control loop, which reaches them by
// posted messages. Modelled on src/server/server.cpp.
class server_process {
public:
    server_process(context& world, rules& checks, const server_machine& machine, unsigned number,
                   const access_file& access);
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;
    ~server_process();

    // ---- the outside. May be called while shards are stopped in a turn. What returns something
    // says whether it changed anything.
    void connection_arrives(connection& link);
    bool stop_for(sim_time pause);        // SIGSTOP
    bool stop_shard_for(sim_time pause);  // one thread gets no processor
    void crash();                         // its kernel closes everything
    void power_cut(sim_time until);
    void terminate();                                  // SIGTERM
    void reload(const access_file& access);            // SIGHUP
    bool take_descriptors(sim_time until, int spare);  // others do, all but so many
    void raise_descriptor_limit(int most);
    // Whoever has a longer lease gets no token until then; then all shards are told to try again.
    bool refuse_tokens(sim_time until, milliseconds longest);
    // As one of several servers whose promise to stop in time is extended late: until then it may
    // not act, and there is no token.
    bool lapse_mandate(sim_time until);

    [[nodiscard]] unsigned number() const noexcept { return number_; }
    [[nodiscard]] bool alive() const noexcept { return alive_; }
    [[nodiscard]] bool serves() const noexcept { return alive_ && !terminating_; }
    // Somebody listens: a connection gets at least into the backlog.
    [[nodiscard]] bool listens() const noexcept { return alive_ && listening_ > 0; }
    // Nobody is left to whom the process owes anything, or it has waited for them long enough.
    [[nodiscard]] bool finished() const noexcept;
    [[nodiscard]] bool idle() const noexcept;

    [[nodiscard]] std::vector<std::unique_ptr<server_shard>>& shards() noexcept { return shards_; }
    [[nodiscard]] core::name_hash hash_of(std::string_view name) const noexcept {
        return hasher_(name);
    }
    [[nodiscard]] server_shard& home_of(core::name_hash hash) const noexcept;

private:
    friend class server_shard;
    friend class guest;
    friend class claim_session;

    struct in_backlog {
        connection* link = nullptr;
        sim_time since{0};
    };
    enum class step : std::uint8_t { serving, begin_drain, finish_drain };

    // ---- what the shards share
    [[nodiscard]] nanoseconds clock() const noexcept;
    [[nodiscard]] std::optional<connection*> take_from_backlog();
    // With a reading of the wall clock that may be older than other shards' tokens.
    [[nodiscard]] core::fencing_token take_token(int shard, std::int64_t wall_ms);
    [[nodiscard]] bool refuses_token(milliseconds lease) const noexcept {
        return longest_lease_ && lease > *longest_lease_;
    }
    [[nodiscard]] bool in_mandate() const noexcept { return in_mandate_; }
    void limit_tokens(std::optional<milliseconds> longest);
    // Then, unless the process is dead or another of that number has begun meanwhile.
    void at_end(sim_time until, std::uint32_t& newest, std::function<void()> then);
    void put_in_mandate(bool now);
    void tokens_change();
    void shard_stopped_listening();
    void look_at_backlog() const;
    void note_if_all_are_taken();
    void look_at_descriptors();

    // ---- the control loop, a thread like the others: it reaches one shard after the other
    void tell_all(const std::function<void(server_shard&)>& what);
    void begin(step next, sim_time patience);
    void acknowledged(step which);
    void go_on_from(step which);

    void end_of_life();

    context* world_;
    rules* rules_;
    const server_machine* machine_;
    unsigned number_;
    core::session_engine::options settings_;
    core::name_hasher hasher_;

    bool alive_ = true;
    bool terminating_ = false;
    bool exit_due_ = false;
    sim_time control_busy_until_{0};
    step step_ = step::serving;
    int awaited_ = 0;

    std::vector<std::unique_ptr<server_shard>> shards_;
    // Shards that are stopped in the midst of a call stop inside each other: who begins last goes
    // on first. So nobody's stop lasts longer than that of the one around it.
    sim_time innermost_stop_ = never;

    std::deque<in_backlog> backlog_;
    int listening_ = 0;
    descriptor_slots slots_;
    std::uint32_t withholding_ = 0;
    sim_time all_taken_at_{-1};         // when last no descriptor was free
    sim_time others_gave_back_at_{-1};  // descriptors, which no shard of ours can know
    sim_time accept_failed_at_{-1};     // when the system had none
    core::fencing_token last_token_;
    std::uint32_t refusals_ = 0;
    std::optional<milliseconds> longest_lease_;  // that there are tokens for
    std::uint32_t lapses_ = 0;
    bool in_mandate_ = true;
    std::vector<connection*> links_;  // accepted and open at this end
};

}  // namespace monolock::simulation
