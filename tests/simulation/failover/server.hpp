#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "coordination/role_machine.hpp"
#include "simulation/failover/books.hpp"
#include "simulation/failover/client.hpp"
#include "simulation/failover/context.hpp"
#include "simulation/failover/store.hpp"

namespace monolock::simulation::failover {

// Something is wrong with the way to the store until a time. The fault counts once a call meets it.
class outage {
public:
    void begins(sim_time until, std::optional<fault> counts_as) noexcept {
        until_ = until;
        counts_as_ = counts_as;
    }
    [[nodiscard]] bool meets_call(context& world) {
        const bool lasts = world.events.now() < until_;
        if (lasts && counts_as_) {
            world.count(*std::exchange(counts_as_, std::nullopt));
        }
        return lasts;
    }

private:
    sim_time until_{0};
    std::optional<fault> counts_as_;
};

// How the calls of one server get to the store and back.
struct store_path {
    outage silent;  // of everybody's
    outage refuses;
    outage slow;
    outage unreadable;         // what campaigns read of `state`
    std::vector<outage> mute;  // of each server's requests
    std::vector<outage> deaf;  // and of what comes back
};

// What a server answers its clients with.
class pier {
public:
    virtual ~pier() = default;
    virtual void send(const connection_ptr& link, reply what, std::int64_t term) = 0;
};

// One machine, and on it one process after the other: the real role machine, a model of the shell
// that drives it, and a model of a shard: locks with owners and queues, and leases.
//
// It takes turns. In each it receives what has arrived, one message after the other, with a
// reading of its clock taken after the receive, and it may be stopped anywhere in between.
class server {
public:
    server(context& world, store& etcd, store_path& path, books& told, pier& shore, int number);

    void start();
    // A connection, if its process listens.
    [[nodiscard]] bool accepts(const connection_ptr& link);
    void arrives(const connection_ptr& link, call what);

    // Each says whether that changed anything.
    bool pause(sim_time how_long);
    bool crash(bool told, sim_time downtime);
    bool shut_down();
    bool cut_clients();
    // An operator ends the owner that has that connection.
    bool force(const connection_ptr& link);
    // Grants that nobody else sees, up to one below the ceiling.
    bool burst();
    void step_wall(std::int64_t by_ms) { wall_offset_ms_ += by_ms; }

    [[nodiscard]] bool runs() const noexcept { return machine_ != nullptr; }
    [[nodiscard]] bool is_active() const;
    [[nodiscard]] sim_time paused_until() const noexcept { return paused_until_; }
    [[nodiscard]] std::size_t sessions() const noexcept { return sessions_.size(); }

private:
    struct store_answer {
        coordination::ticket to;
        coordination::answer what;
    };
    struct client_call {
        connection_ptr link;
        call what;
    };
    // The machine's thread asks the shard about its leases, and is answered; of one activity.
    struct survey_question {
        std::uint64_t activity = 0;
        milliseconds limit{0};
    };
    struct survey_answer {
        std::uint64_t activity = 0;
        coordination::lease_report says;
    };
    struct sessions_gone {};
    using message = std::variant<store_answer, coordination::watch_event, client_call,
                                 survey_question, survey_answer, sessions_gone>;
    struct session {
        connection_ptr link;
        nanoseconds last_seen{0};
        bool owns = false;
    };
    struct named_lock {
        session* owner = nullptr;
        std::deque<session*> queue;
    };

    // The shell.
    void wake(sim_time when);
    void turn();
    [[nodiscard]] bool stopped(std::uint64_t epoch);
    void post(message what, sim_time delay);
    void take(const message& what, nanoseconds reading);
    void called(nanoseconds reading) const;
    void take_answer(const store_answer& what, nanoseconds reading);
    void adopt(const survey_question& what, nanoseconds reading);
    void drive();
    void send_out(const coordination::outgoing& what, nanoseconds reading);
    void carry(const coordination::outgoing& what, sim_time patience);
    void carry_out_late(const coordination::request& what, sim_time patience);
    void comes_through(const coordination::outgoing& what);
    void give_up_calls(nanoseconds judged);
    void follow_watch();
    void obey(const coordination::role_event& what);
    void opened();
    void process_ends(sim_time downtime);
    void next_turn();
    [[nodiscard]] bool at_rest() const;
    void survey();
    [[nodiscard]] sim_time store_delay();
    [[nodiscard]] nanoseconds clock() const { return clock_.at(world_->events.now()); }
    [[nodiscard]] static coordination::time_point at(nanoseconds reading) {
        return coordination::time_point{reading};
    }
    [[nodiscard]] coordination::token_position position() const;

    // The shard.
    [[nodiscard]] bool may_answer(nanoseconds reading) const;
    void handle(const client_call& what, nanoseconds reading);
    void admit(const connection_ptr& link, nanoseconds reading);
    void tell(const session& who, reply what);
    void end(const connection& link);
    void promote(int lock);
    void promote_all();
    [[nodiscard]] milliseconds wanted() const;
    [[nodiscard]] bool grant(session& who, reply how);
    void expire(nanoseconds judged);
    void turn_away(reply how);

    context* world_;
    store* etcd_;
    store_path* path_;
    books* told_;
    pier* shore_;
    int number_;
    drifting_clock clock_;
    std::int64_t wall_offset_ms_ = 0;

    // The process.
    std::unique_ptr<coordination::role_machine> machine_;
    std::uint64_t epoch_ = 0;  // counts processes
    std::deque<message> inbox_;
    std::vector<connection_ptr> accepted_;
    bool shut_down_ = false;                      // ordered, and not yet seen by it
    bool withdraw_ = false;                       // the same
    bool withdrawn_ = false;                      // ordered, and seen
    std::map<std::uint64_t, nanoseconds> calls_;  // under way: ticket, until when
    std::uint64_t watch_number_ = 0;
    bool in_turn_ = false;
    sim_time paused_until_{0};
    sim_time armed_ = never;
    bool open_ = false;
    std::uint64_t last_token_ = 0;
    std::map<std::uint64_t, std::unique_ptr<session>> sessions_;  // by connection
    std::map<int, named_lock> locks_;

    // What the shard has been told, and what it is asked.
    std::uint64_t activity_ = 0;
    milliseconds lease_limit_{0};
    milliseconds longest_{0};   // of any owner since the last survey
    milliseconds reported_{0};  // as wanted
    bool surveying_ = false;
    nanoseconds survey_at_{0};
};

}  // namespace monolock::simulation::failover
