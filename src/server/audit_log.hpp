#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "config/parsed.hpp"
#include "core/fact.hpp"
#include "server/audit_queue.hpp"
#include "server/audit_sink.hpp"
#include "server/logger.hpp"
#include "server/peer_address.hpp"

namespace monolock::server {

// Whom a record is about. The texts need to live for the call only.
struct audit_subject {
    std::string_view lock;
    std::string_view identity;  // empty without mTLS
    const peer_address& peer;
};

// The audit log (docs/audit.md). Shards hand it their events, in the order in which they happened;
// a thread of its own writes them. What one thread records stays in its order, and all of a lock
// happens on one shard: so `released` stands before the next `granted`.
//
// Recording copies two names under a mutex and never waits for a disk. While the disk refuses,
// events wait in memory up to a bound and the diagnostic log says so, once a minute; past the bound
// they are lost and counted, and an audit_gap stands in their place.
//
// All functions may be called from any thread, unless they say otherwise.
class audit_log {
public:
    // Opens the path, "-" being standard output, and starts the thread. Throws std::runtime_error
    // with one line that names the file and why.
    audit_log(const std::string& path, logger& log);

    // For tests: what opens the sink, at first and at each reopen. Its diagnostic says why not.
    using opener =
        std::function<config::parsed<std::unique_ptr<audit_sink>>(const std::string& path)>;
    audit_log(std::string path, logger& log, opener open, audit_queue::limits bounds);

    audit_log(const audit_log&) = delete;
    audit_log& operator=(const audit_log&) = delete;
    // finish() with little patience, if nobody called it.
    ~audit_log();

    void granted(const audit_subject& who, core::fencing_token token, core::nanoseconds waited);
    void released(const audit_subject& who, core::fencing_token token, core::nanoseconds held,
                  core::end_reason why);
    // Refused by the ACL: at its ACQUIRE, or as a waiter by new rules.
    void denied(const audit_subject& who);
    // An operator ends the owner's session. To be recorded before the session ends, so that it
    // stands before the `released` that follows.
    void force_release(const audit_subject& who, core::fencing_token token);
    // An operator ends a waiter's session.
    void kick_waiter(const audit_subject& who);

    // Opens the path anew, and from then on writes to that; the old file is closed once a line
    // begun in it is done with. Says which file that is, or why it cannot be opened: then the old
    // one stays in use. Not for standard output.
    [[nodiscard]] config::checked<std::string> reopen();

    // Writes what waits, for so long at the most, and ends the thread. Nothing may be recorded any
    // more. What could not be written is reported in the diagnostic log. One thread, once.
    void finish(core::nanoseconds time_max);

    [[nodiscard]] std::uint64_t lost_events() const;
    // It cannot be written at present, and events wait in memory; whether a line was due or not.
    [[nodiscard]] bool is_refused() const;

private:
    class worker;

    // Shared with the thread, which outlives this if the disk never lets it go.
    std::shared_ptr<worker> worker_;
    std::thread thread_;
};

}  // namespace monolock::server
