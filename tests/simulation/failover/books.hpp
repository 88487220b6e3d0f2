#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordination/store.hpp"
#include "simulation/failover/client.hpp"
#include "simulation/failover/context.hpp"
#include "simulation/failover/store.hpp"

namespace monolock::simulation::failover {

// What the rules are judged by. Of the code under test it takes the requests that it makes and what
// it says to clients; all else it knows from the world itself.
class books {
public:
    books(context& world, const store& truth, const std::vector<std::unique_ptr<client>>& clients);

    // ---- a server and the store. `reading` is of the server's clock.
    void process_starts(int server, seconds ttl);
    void requests(int server, coordination::ticket is, const coordination::request& what,
                  nanoseconds reading, std::size_t sessions);
    void is_answered(int server, coordination::ticket to, const coordination::answer& what,
                     nanoseconds reading);

    // ---- a server and its clients
    // Its role machine is active, after a call with that reading; and it has begun to listen.
    void is_active(int server, nanoseconds reading);
    void opens(int server);
    // It is about to answer somebody. The reading is of this very moment.
    void answers(int server, nanoseconds reading);
    void steps_down(int server);
    void grants(int server, const connection& to, std::uint64_t token, nanoseconds reading);
    void grants(std::uint64_t token);
    [[nodiscard]] std::int64_t term_of(int server) const { return of(server).term; }

    // ---- the store, before it changes
    void puts(const std::optional<coordination::state_record>& before,
              const coordination::state_record& after);

    // ---- a client has been told that it owns its lock
    void believes_now(int number);

private:
    struct lease_page {
        std::chrono::milliseconds ttl{0};
        bool campaigned = false;
        bool revoked = false;
    };
    struct sent {
        coordination::request what;
        nanoseconds reading{0};
    };
    // One process of a server.
    struct process {
        std::chrono::milliseconds asked{0};
        std::map<std::int64_t, lease_page> leases;
        std::map<std::uint64_t, sent> under_way;
        int in_chain = 0;
        std::deque<nanoseconds> lately;  // requests
        // Its newest term.
        std::int64_t term = 0;
        std::int64_t lease = 0;
        nanoseconds won_at{0};
        nanoseconds confirmed_at{0};
        std::chrono::milliseconds ttl{0};
        std::chrono::milliseconds longest_lease{0};  // that it was told at the campaign
        bool renewed = false;
        bool opened = false;
        std::optional<nanoseconds> active_since;
    };

    [[nodiscard]] const process& of(int server) const {
        return processes_.at(static_cast<std::size_t>(server));
    }
    [[nodiscard]] process& of(int server) {
        return processes_.at(static_cast<std::size_t>(server));
    }
    void may_answer(int server, nanoseconds reading) const;
    void uses_lease(process& who, const coordination::request& what);
    void not_too_often(process& who, nanoseconds reading);
    [[nodiscard]] milliseconds covered(milliseconds lease) const;
    void one_believer(int number, std::int64_t term, const char* how) const;

    context* world_;
    const store* truth_;
    const std::vector<std::unique_ptr<client>>* clients_;
    std::vector<process> processes_;
    std::int64_t newest_opened_ = 0;  // term
    std::uint64_t last_token_ = 0;
};

}  // namespace monolock::simulation::failover
