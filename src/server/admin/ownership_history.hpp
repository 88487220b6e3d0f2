#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/unordered_set.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fact.hpp"
#include "core/name_hash.hpp"
#include "server/peer_address.hpp"

namespace monolock::server::admin {

// A change of a lock's owner.
struct ownership_change {
    enum class kind : std::uint8_t { granted, released };

    std::uint64_t number = 0;  // of the shard, rising
    kind what = kind::granted;
    core::end_reason reason = core::end_reason::graceful;  // released
    core::session_id id;
    core::fencing_token token;
    core::time_point at;
    core::nanoseconds lasted{0};  // granted: waited; released: held
    peer_address peer;
    std::string lock;
    std::string identity;
};

// The latest ownership changes of one shard, fed by the facts that the audit log is made of. Its
// thread alone uses it. Invariants:
//
// 1. It holds at most `capacity` changes, at most lock_max of one lock, and identities_max bytes of
//    identities (beside the newest). What is over a bound goes, the oldest of that lock or of all
//    first; so a lock that changes hands all the time does not push out what was of the others.
// 2. Each change is in the order of all and in that of its lock, both by number.
// 3. A lock is known while it has a change here.
//
// That is 1.5 MB when it is full of short names, and at most 3.7 MB (measured by its allocation
// test). A change costs a look-up or two, a fifth of a microsecond, and no allocation once all is
// full, but for names and identities longer than any before in their place.
class ownership_history {
public:
    static constexpr std::size_t capacity = 4096;
    static constexpr std::size_t lock_max = 100;
    static constexpr std::size_t identities_max = std::size_t{1} << 20U;

    ownership_history();
    ownership_history(const ownership_history&) = delete;
    ownership_history& operator=(const ownership_history&) = delete;
    ~ownership_history();

    // For the shard's observer_port::on_fact: takes grants and the ends of owners.
    void take(const core::fact& what);

    // The same for a change of which all but the number is known; `hash` is that of the lock's
    // name.
    void add(const ownership_change& change, core::name_hash hash);

    // The number of the next change.
    [[nodiscard]] std::uint64_t next() const noexcept { return next_; }

    struct past {
        std::vector<ownership_change> changes;  // oldest first
        // No change that is later than this is missing; absent: none at all is.
        std::optional<core::time_point> complete_after;
    };
    [[nodiscard]] past of(std::string_view lock, core::name_hash hash) const;

    // Those from that number on, oldest first; of more than `count` the last, and those that are
    // gone are left out.
    [[nodiscard]] std::vector<ownership_change> since(std::uint64_t number,
                                                      std::size_t count) const;

private:
    using hook = boost::intrusive::list_member_hook<>;
    struct known_lock;

    struct remembered {
        ownership_change change;  // without the lock's name
        known_lock* of = nullptr;
        hook in_order;  // of all; or among the spare
        hook in_lock;
    };
    template <hook remembered::*Member>
    using changes =
        boost::intrusive::list<remembered, boost::intrusive::member_hook<remembered, hook, Member>>;

    using set_hook = boost::intrusive::unordered_set_member_hook<>;
    struct known_lock {
        std::string name;
        core::name_hash hash;
        changes<&remembered::in_lock> past;
        std::optional<core::time_point> complete_after;
        set_hook in_locks;
        hook in_spare;
    };
    struct by_hash {
        std::size_t operator()(const known_lock& one) const noexcept { return one.hash.value; }
    };
    struct same_name {
        bool operator()(const known_lock& left, const known_lock& right) const noexcept {
            return left.name == right.name;
        }
    };
    using locks = boost::intrusive::unordered_set<
        known_lock, boost::intrusive::member_hook<known_lock, set_hook, &known_lock::in_locks>,
        boost::intrusive::hash<by_hash>, boost::intrusive::equal<same_name>,
        boost::intrusive::power_2_buckets<true>>;

    // An iterator of the locks, constant or not.
    [[nodiscard]] static auto find(auto& among, std::string_view name, core::name_hash hash);
    [[nodiscard]] known_lock& know(std::string_view name, core::name_hash hash);
    [[nodiscard]] remembered& make_place(known_lock& of);
    [[nodiscard]] ownership_change& begin(std::string_view name, core::name_hash hash,
                                          std::string_view identity);
    [[nodiscard]] ownership_change& begin(const core::session& who);
    void unlink(remembered& one, const known_lock& next_of);
    void forget_oldest(const known_lock& next_of);
    [[nodiscard]] static ownership_change copy_of(const remembered& one);

    std::uint64_t next_ = 0;
    std::size_t identity_bytes_ = 0;
    std::optional<core::time_point> complete_after_;  // of all locks

    std::deque<remembered> places_;
    std::deque<known_lock> lock_places_;
    std::vector<locks::bucket_type> buckets_;
    locks locks_;
    changes<&remembered::in_order> order_;
    changes<&remembered::in_order> spare_;
    boost::intrusive::list<known_lock,
                           boost::intrusive::member_hook<known_lock, hook, &known_lock::in_spare>>
        spare_locks_;
};

}  // namespace monolock::server::admin
