#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "coordination/lease_ledger.hpp"
#include "coordination/records.hpp"
#include "coordination/retry_pause.hpp"
#include "coordination/role.hpp"
#include "coordination/sightings.hpp"
#include "coordination/store.hpp"
#include "coordination/time.hpp"

namespace monolock::coordination {

struct outgoing {
    ticket is;
    request what;
};

// The watch on `active` that should be running. When the number is another than that of the one
// that runs, or ran, the shell ends it and begins this one. It does not begin one again by itself.
struct watch_order {
    std::uint64_t number = 0;
    revision from;  // the first that it shall tell of
};

// What the server has to do, in order.
struct open_now {};  // listen, grant within the limits below. Lost before it was told: never told
struct step_down_now {
    loss why = loss::mandate_over;
};  // end all sessions with 0x01, close the listener, then call sessions_ended()
struct retired_now {};  // nothing is left to be asked of the store; the process may end
using role_event = std::variant<open_now, step_down_now, retired_now>;

// One server's part in who is active: what to ask of the store and when, what its answers mean, and
// until when the server may answer its clients. Pure: time, answers and numbers go in; requests,
// events and limits come out. docs/decisions/0020 has the reasons.
//
// One thread drives it, in turns. All times are readings of the clock that runs through suspend,
// on this thread, and never go back. A turn, at next_wakeup() and whenever something arrived:
//
//     poll the store;  now = clock reading taken after that
//     take(...)             for all that arrived
//     report(...)           when the shards have been asked
//     while next(clock reading, tokens) returns a request: hand it to the store
//     while next_event() returns one: carry it out
//     publish deadline(), tokens(), lease_limit(), grants_from()
//
// The reading for next() is taken before the request is handed over: it is its send time. Every
// request gets exactly one answer, `failed` at the latest an eighth of a TTL later.
//
// Whoever answers a client compares a reading, taken after the receive that brought the message
// and before acting on it, with deadline(): at or past it nothing is answered or granted, whatever
// role() says. So a thread that was stopped for hours does no harm before it has called anything
// here.
//
// Invariants:
//  1. deadline() = send time of the last successful transaction + 0.8 x TTL; the TTL is the smaller
//     of what was asked for and what was answered. Keepalives and what was not answered count
//     nothing.
//  2. At most one transaction of the chain is under way. Beside it at most one keepalive, one
//     grant of a lease, one look, one revocation.
//  3. It becomes active only if its predecessor is over (sightings.hpp), a renewal that was sent
//     after that and put its name into `state` was answered, and its deadline has not passed. Its
//     renewals before that leave `state` alone: for who comes next it was never there.
//  4. Each lease is used for one campaign. When that was not won, or the term is over, the lease
//     is revoked once and never used again: a campaign whose answer was lost leaves no key behind
//     that this server does not know of, but for a lease's time.
//  5. A campaign begins only when no session of this server's is left.
//  6. Only a server that was active resigns, and only when its sessions are ended: one that still
//     waits for its predecessor must not tell the next that there is nothing to wait for.
//  7. tokens().ceiling and lease_limit() are what an answered renewal has put, or less.
//  8. Whatever failed is asked again after a pause of an eighth of a TTL, doubling to a TTL; a
//     renewal without doubling; a look, after a watch that broke for the first time, at once.
//  9. After a campaign that failed, or was won for nothing, the next comes after such a pause, too,
//     whatever the watch tells: what it tells of may be what this server itself has put and
//     revoked. The doubling ends when it was active and renewed, or saw another's renewal.
class role_machine {
    using milliseconds = std::chrono::milliseconds;

public:
    explicit role_machine(role_options options);

    // ---- the store

    // The next request that is due, or nothing. `tokens` is how they stand at `now`; a renewal puts
    // the ceiling by it, and comes early when less than half a window is left. To be called also
    // when a grant had to wait for the ceiling.
    [[nodiscard]] std::optional<outgoing> next(time_point now, token_position tokens);
    // An answer to a request from before the last loss is ignored, one that makes no sense counts
    // as failed.
    void take(ticket to, const answer& what, time_point now);
    void take(const watch_event& what, time_point now);
    // The time has come, and nothing arrived. (Each other call looks at the time first, too.)
    void judge(time_point now);
    // When to take the next turn if nothing arrives. Nothing when retired.
    [[nodiscard]] std::optional<time_point> next_wakeup() const;
    [[nodiscard]] const std::optional<watch_order>& watch() const noexcept { return watch_; }

    // ---- the server

    [[nodiscard]] std::optional<role_event> next_event();
    // All sessions are gone and the listener is closed: after step_down_now, once.
    void sessions_ended(time_point now);
    // After step_down_now and shut_down(), instead of it, once: for good, a thread that has stalled
    // may yet act upon what it read while this server was active. Then nothing is resigned, the key
    // goes with its lease, and who comes next waits as if this server had died.
    void sessions_abandoned();
    // The server is to leave soon: it campaigns no more. An active one stays it until shut_down(),
    // or until it loses its role. Any other leaves now, as at shut_down(): it has no client.
    void withdraw(time_point now);
    // For good; when the shutdown delay is over, since an active server gets step_down_now. It
    // keeps the key until sessions_ended(), and resigns. Any other has nothing to end, and gets
    // retired_now. `why`, if it is another reason than an operator's order, becomes last_loss().
    void shut_down(time_point now, std::string_view why = {});
    // What the shards say of their leases. To be called while active: when a claim waits for
    // lease_limit(), and about four times a TTL. A report that is not made delays the lowering of
    // the record and nothing else.
    void report(const lease_report& what, time_point now);

    // ---- what holds now

    [[nodiscard]] role state() const noexcept { return role_; }
    // While waiting or active (and while stepping down by order): the create revision of the key.
    [[nodiscard]] std::optional<term> current_term() const noexcept;
    // While waiting or active; in the past otherwise.
    [[nodiscard]] time_point deadline() const noexcept;
    // While active; else both are zero and nothing can be granted.
    [[nodiscard]] token_range tokens() const noexcept;
    // While active: the longest lease that may be granted, zero if none yet; the largest number
    // there is if every lease may.
    [[nodiscard]] milliseconds lease_limit() const noexcept;
    // While active: what the store has as the longest lease.
    [[nodiscard]] milliseconds longest_lease() const noexcept;
    // While active: no grant before that.
    [[nodiscard]] time_point grants_from() const noexcept { return grants_from_; }
    // Who has the key, as far as known; itself included.
    [[nodiscard]] std::optional<std::string> holder() const;
    // While waiting: for so long at least. Else zero.
    [[nodiscard]] milliseconds opens_in(time_point now) const noexcept;
    // Whether that one has renewed it. Until then it may yet give it up, for all that is known.
    [[nodiscard]] bool holder_has_renewed() const noexcept;
    // Of the last time that this server had the key and lost it: one line for people. Empty if
    // never.
    [[nodiscard]] const std::string& last_loss() const noexcept { return last_loss_; }
    // The last failure of the store, one line for people. Empty if there was none, or if a renewal
    // was answered since, or seen of another server: then the store works.
    [[nodiscard]] const std::string& last_error() const noexcept { return last_error_; }
    // How often it became active.
    [[nodiscard]] std::uint64_t failovers() const noexcept { return failovers_; }
    [[nodiscard]] std::uint64_t store_errors() const noexcept { return store_errors_; }

private:
    struct lease {
        lease_id id;
        milliseconds ttl{0};
    };
    // What begins with a campaign that was won, and ends with the loss.
    struct tenure {
        lease held;
        term mine;
        revision known;              // of `active`, as far as the chain was answered
        std::uint64_t sequence = 0;  // of the last renewal that was sent
        time_point confirmed_at;     // send time of the last successful transaction
        time_point opens_at;
        milliseconds inherited_lease{0};
        token_range tokens;
        lease_ledger leases;
        time_point renew_at;    // when it is due
        time_point renew_from;  // and not before, however much it is wanted
        time_point keep_alive_at;
        bool renewed = false;     // once at least in this term
        bool named = false;       // with a `state` that names this server
        bool recovering = false;  // the last answer was: not done, but still mine
        std::string trouble;      // of the last renewal, if it failed
    };
    enum class step : std::uint8_t { campaign, renewal, resignation };
    struct transaction {
        step what = step::campaign;
        ticket is;
        time_point sent_at;
        bool names = false;             // it puts a `state` that names this server
        std::uint64_t ceiling = 0;      // and this
        milliseconds longest_lease{0};  // and this
        bool stale = false;             // of a term that is over: its answer means nothing
    };

    // What is due, and when; nothing while it is under way or not wanted.
    [[nodiscard]] std::optional<time_point> revoke_due() const;
    [[nodiscard]] std::optional<time_point> look_due() const;
    [[nodiscard]] std::optional<time_point> lease_due() const;
    [[nodiscard]] std::optional<time_point> campaign_due() const;
    [[nodiscard]] std::optional<time_point> keep_alive_due() const;
    [[nodiscard]] std::optional<time_point> renewal_due() const;
    [[nodiscard]] std::optional<time_point> resignation_due() const;

    [[nodiscard]] std::optional<request> due_request(ticket fresh, time_point now,
                                                     token_position tokens);
    [[nodiscard]] request campaign_request(ticket fresh, time_point now);
    [[nodiscard]] request renewal_request(ticket fresh, time_point now, token_position tokens);
    [[nodiscard]] request resignation_request(ticket fresh, time_point now, token_position tokens);
    [[nodiscard]] state_record state_of(std::uint64_t ceiling, milliseconds longest) const;

    void take_look(const answer& what, time_point now);
    void take_lease(const answer& what, time_point now);
    void take_kept(const answer& what, time_point now);
    void take_transaction(const answer& what, time_point now);
    void take_campaign(const transaction& sent, const answer& what, time_point now);
    void take_renewal(const transaction& sent, const answer& what, time_point now);
    void take_resignation(const answer& what);
    void not_renewed(const transaction& sent, const renewed& what, time_point now);
    void take_put(const active_entry& what, time_point now);
    void take_deleted(revision at, time_point now);
    void take_broken(const std::string& why, time_point now);
    void complain(const answer& what);

    void win(const transaction& sent, const campaigned& what, time_point now);
    void confirm(const transaction& sent, revision at, time_point now);
    void become_standby(time_point look_at);
    void become_candidate(time_point now);
    void put_off_campaign(time_point now);
    void saw(const active_entry& what, time_point now);
    void lose(loss why, const std::string& how, time_point now);
    void end_tenure();
    void drop_lease();
    void retire_if_done();
    void expire(time_point now);
    void open_if_named(time_point now);

    role_options options_;
    role role_ = role::standby;
    bool withdrawn_ = false;
    bool leaving_ = false;  // shut_down() was called, or what follows withdraw() is the same
    time_point turned_at_;  // the last reading
    std::vector<role_event> events_;
    std::uint64_t tickets_ = 0;

    // Under way.
    std::optional<transaction> chain_;
    std::optional<ticket> look_, lease_wanted_, keep_alive_, revoke_;

    sightings sightings_;
    std::optional<active_entry> active_;  // as last heard of, while not its own
    std::optional<watch_order> watch_;
    bool watch_broke_ = false;
    time_point look_at_;   // as a standby
    time_point lease_at_;  // when campaigning
    retry_pause pause_;
    retry_pause campaign_pause_;  // of campaigns; what a watch tells does not end it
    time_point campaign_from_;
    std::optional<lease> lease_;  // for the next campaign
    std::vector<lease_id> to_revoke_;
    std::optional<tenure> tenure_;
    time_point grants_from_;

    std::string last_loss_;
    std::string last_error_;
    std::uint64_t failovers_ = 0;
    std::uint64_t store_errors_ = 0;
};

}  // namespace monolock::coordination
