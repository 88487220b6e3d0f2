#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/session_engine.hpp"
#include "server/acceptor.hpp"
#include "server/access_policy.hpp"
#include "server/admin/ownership_history.hpp"
#include "server/audit_log.hpp"
#include "server/cache_line.hpp"
#include "server/claim_arrival.hpp"
#include "server/failover/owner_leases.hpp"
#include "server/foreign_protocol.hpp"
#include "server/handshake.hpp"
#include "server/lingering_close.hpp"
#include "server/logger.hpp"
#include "server/shard_counters.hpp"
#include "server/shard_loop.hpp"
#include "server/socket_session.hpp"
#include "server/tls_handshake.hpp"
#include "server/token_counter.hpp"

namespace monolock::server {

class shard;

// What all shards of a process share. It outlives them; what changes in it is atomic. What changes
// with each connection, claim or grant has cache lines of its own: the rest is read with every
// heartbeat, on every shard.
struct shard_surroundings {
    alignas(cache_line_bytes) token_counter tokens{};
    alignas(cache_line_bytes) acceptor::surroundings accepting{};
    // Seldom asked for, and seldom changed.
    std::array<log_gate, foreign_protocol_count> hints{};
    std::atomic<std::uint64_t> tls_handshake_errors{0};  // handshakes that came to nothing
    access_policy access_at_start{};
    std::atomic<std::uint64_t> acl_denials{0};       // claims refused and waiters sent away
    std::atomic<std::uint64_t> leases_uncovered{0};  // grants to leases above lease_covered_max
    log_gate uncovered{};
    alignas(cache_line_bytes) std::atomic<std::uint64_t> last_session_id{0};
    // From here on nothing changes once the shards run.
    alignas(cache_line_bytes) core::name_hasher hasher;
    core::nanoseconds io_timeout;
    tls_setting tls_at_start{};  // without context: connections are plain
    logger* log;
    audit_log* audit = nullptr;             // null: off
    core::mandate_port* mandate = nullptr;  // null: in force for ever
    bool tracks_leases = false;             // of the owners, for a successor
    // Who has a longer one is granted, and a successor does not wait for it to stop.
    std::chrono::milliseconds lease_covered_max = std::chrono::milliseconds::max();
    bool remembers_ownership = false;              // for those who ask later who had a lock
    std::vector<std::unique_ptr<shard>> shards{};  // complete before the first one runs
};

// One thread, one loop, one lock table, and every session on the names that hash to it. Any shard
// accepts connections and hears their ACQUIRE; then the connection moves, once, to the shard of its
// name. Public functions may be called from any thread; they post. Callbacks run on this shard's.
// It shares no cache line with another shard.
class alignas(cache_line_bytes) shard final : tls_handshake_owner,
                                              handshake_owner,
                                              session_owner,
                                              core::clock_port,
                                              core::observer_port {
public:
    using callback = std::function<void()>;

    // `number` is this shard's place in surroundings.shards.
    shard(shard_surroundings& surroundings, std::size_t number);
    shard(const shard&) = delete;
    shard& operator=(const shard&) = delete;
    // The thread must have been joined, or never started.
    ~shard();

    // Starts the thread. Throws std::system_error if there is none to be had.
    void start();

    // Locks are granted again if they were not, and claims that other shards hand over are welcome.
    // The shard is new, or was drained and has called back. Connections of before may linger on.
    void begin_serving();

    // Connections are accepted from these sockets from now on. All shards have been told before to
    // begin serving, for the first connection may be another's. The threads need not run yet.
    void open(std::vector<posix::descriptor> listening);

    // The locks that the token source refused are tried again, a batch a turn.
    void retry_grants();

    // Has `question` called on this shard's thread, between two events.
    void ask(callback question);

    // For questions that ask() has brought here, on this shard's thread alone.
    [[nodiscard]] core::session_engine& engine() noexcept { return engine_; }
    // The longest lease of any owner since this was last asked; zero if there was none, or if the
    // surroundings do not say that leases are tracked.
    [[nodiscard]] std::chrono::milliseconds take_longest_lease() noexcept {
        return leases_.take_peak();
    }
    // Null unless the surroundings say that ownership is remembered.
    [[nodiscard]] const admin::ownership_history* history() const noexcept {
        return history_.get();
    }

    // An operator ends a session of this shard with ERROR 0x02, an owner's or a waiter's. On this
    // shard's thread.
    void end_by_operator(core::connected_session& who);

    // Written by this shard, read by anybody at any time.
    [[nodiscard]] const shard_counters& counters() const noexcept { return counters_; }
    // As shard_counters has it: for one reader alone, of any thread.
    [[nodiscard]] std::uint64_t take_sessions_peak() noexcept {
        return counters_.take_sessions_peak();
    }

    // A claim for a name of this shard, from another.
    void hand_over(claim_arrival claim);

    // Handshakes that begin from now on use these files. Who began before is asked about again when
    // it claims.
    void adopt_tls(tls_setting newest);
    // Of a newer generation than any before. In one turn, the rules are in force here and whoever
    // waits without their permission is sent away with ERROR 0x18. Owners stay.
    void adopt_rules(access_policy access);

    // First step of a controlled shutdown, and of stepping down: takes what waits in the backlogs
    // and closes the listening sockets, answers handshakes under way and all that follow with ERROR
    // 0x01, grants nothing any more. Then calls `done`.
    void begin_drain(callback done);

    // Second step: every session gets ERROR 0x01 and ends; `done` is called when there is none
    // left. Connections may be left: those that linger, and TLS handshakes that will be refused.
    void finish_drain(callback done);

    // Calls `done` when the last connection is closed; what lingers does so for the I/O timeout at
    // the most. After the second step, before the shard is opened again.
    void await_last_connection(callback done);

    // Stops the loop where it stands, waits for the thread, and ends the sessions that are left
    // with ERROR 0x01, without granting their locks to anybody.
    void stop_and_join();
    // The same unless the thread does not come to the end of its turn in that time: then false, and
    // the shard cannot be destroyed.
    [[nodiscard]] bool stop_and_join_within(core::nanoseconds patience);

private:
    enum class stage { serving, refusing, draining };

    // tls_handshake_owner
    void on_secured(connection_socket&& socket, const peer_address& peer,
                    std::string&& identity) override;
    void on_failed(connection_socket&& socket, const peer_address& peer,
                   const std::string& why) override;
    void on_foreign(const peer_address& peer, foreign_protocol what) override;
    [[nodiscard]] const tls_setting& tls_in_force() const noexcept override { return tls_; }
    // handshake_owner
    void on_claim(connection_socket&& socket, claim_arrival&& claim) override;
    void on_refused(connection_socket&& socket, const peer_address& peer,
                    const protocol::malformed& refusal, std::span<const std::byte> seen) override;
    // session_owner
    void on_readable(socket_session& who) override;
    void on_writable(socket_session& who) override;
    void on_linger(connection_socket&& socket) override;
    // clock_port
    core::time_point now() noexcept override;
    // observer_port
    void on_fact(const core::fact& what) override;
    void on_error_due(const core::connected_session& who, protocol::error_code code,
                      std::string_view reason) override;

    void on_connection(loose_connection connection, const peer_address& peer);
    void refuse_at_once(const posix::descriptor& connection);
    void begin_tls(connection_socket&& socket, const peer_address& peer);
    void begin_claim(connection_socket&& socket, const peer_address& peer, std::string&& identity);
    [[nodiscard]] std::optional<connection_socket> watch(loose_connection connection);
    [[nodiscard]] bool may_act() const noexcept;
    [[nodiscard]] bool trusts(connection_socket& socket) const;
    void distrust(connection_socket&& socket, const peer_address& peer);
    void admit(connection_socket&& socket, claim_arrival&& claim);
    void arrive(claim_arrival&& claim);
    [[nodiscard]] bool permits(const claim_arrival& claim) const;
    void deny(connection_socket&& socket, const claim_arrival& claim);
    void send_waiters_away();
    void refuse(connection_socket&& socket, protocol::error_code code);
    void refuse(connection_socket&& socket, const protocol::malformed& why);
    void arm_deadline();
    void add_listening(posix::descriptor listening);
    void judge();
    void retry_batch(std::size_t left);
    void close_sessions();
    void report_if_alone();
    void log_refused(const peer_address& peer, const protocol::malformed& refusal,
                     std::span<const std::byte> seen);
    void log_denied(const claim_arrival& claim);
    void note_lease(const core::fact& what);
    void note_uncovered(const core::granted& grant);
    void audit(const core::fact& what);
    void log_fact(const core::fact& what);
    void log_ended(const core::ended& what);

    shard_surroundings* around_;
    std::size_t number_;
    shard_loop loop_;
    shard_counters counters_;
    owner_leases leases_;
    std::unique_ptr<admin::ownership_history> history_;
    core::session_engine engine_;
    access_policy access_;
    std::vector<boost::intrusive_ptr<acceptor>> acceptors_;
    tls_setting tls_;
    handshake_steps steps_{loop_};
    deadline_list<tls_handshake> tls_handshakes_;
    deadline_list<handshake> handshakes_;
    deadline_list<lingering_close> lingering_;
    shard_loop::timer deadline_;   // the engine's next
    bool judging_ = false;         // more is overdue than a turn looks at: the next is posted
    shard_loop::timer last_look_;  // whether what lingers has gone
    stage stage_ = stage::serving;
    callback on_drained_;  // no session is left
    callback on_alone_;    // no connection is left
    std::thread thread_;
    std::future<void> loop_ended_;  // the thread is on its last instructions
};

}  // namespace monolock::server
