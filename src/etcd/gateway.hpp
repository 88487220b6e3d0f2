#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "config/etcd_endpoints.hpp"
#include "coordination/store.hpp"
#include "coordination/time.hpp"

namespace monolock::etcd {

struct gateway_options {
    std::vector<config::etcd_endpoint> endpoints;  // one at least, all of one scheme
    std::string prefix;  // the keys are `active` and `state` behind it; any bytes

    // How long a call may take, authentication included. A call is over when its time is; the
    // server gives TTL/8 at most.
    std::chrono::nanoseconds patience{0};
    // A watch that was told nothing for so long is broken: its member of etcd may be cut off
    // without knowing it. While a server is active it renews four times a TTL. Zero: no limit.
    std::chrono::nanoseconds watch_silence_max{0};

    // Of https endpoints. Paths of PEM files, read anew for each connection. Without a CA, the
    // system's decide; without a certificate, none is shown. The certificate needs its key.
    std::string ca_file{};
    std::string certificate_file{};
    std::string key_file{};
    // A file with one line `user:password`, read anew at each authentication. Empty: none.
    std::string user_file{};
};

struct answered {
    coordination::ticket to;
    coordination::answer what;
};
// What poll() has to tell: an answer to a request, or an event of the watch.
using news = std::variant<answered, coordination::watch_event>;

// Carries out the requests of src/coordination/store.hpp against the JSON gateway of etcd's members
// (docs/decisions/0021). It has no thread: everything happens inside poll(), on the one thread that
// may call its functions once it is made, except wake(), which any may. SIGPIPE is to be ignored by
// then. Only want of memory throws.
//
// Each call is one HTTP request on a connection of its own, which is kept for later calls: none
// waits behind another. A call uses the endpoint that worked last; when one fails for want of a
// good answer (no connection, no answer in time, status 5xx, no JSON of etcd's), the next call uses
// the next one. An answer that is an error of etcd's own about the request (no such lease,
// permission denied) is `failed` too, and its endpoint is kept.
//
// Proxies of the environment are not used, redirects not followed, server certificates and names
// always verified, TLS is 1.2 at least, and an answer has at most answer_bytes_max bytes.
//
// What a caller may rely on about time:
//  - The first byte of a request leaves inside a poll() that begins after its send(): a clock
//    reading taken before send() is no later than the true time of sending. (A request may go out
//    twice, when etcd closed a kept connection or refused a token; both times are after send().)
//  - What poll() returns was received before it returned: a reading taken after poll() is a reading
//    after the receive.
//  - A call whose time is over is judged with a reading from before a last look for its answer. So
//    after a pause of this process, an answer that waits in the socket is told as one.
class gateway {
public:
    // Does no I/O yet and reads no file. Throws std::runtime_error when the system refuses
    // descriptors or memory.
    explicit gateway(gateway_options options);
    gateway(const gateway&) = delete;
    gateway& operator=(const gateway&) = delete;
    ~gateway();  // what is under way is dropped unanswered

    // Exactly one `answered` with this ticket comes out of a later poll(), after the patience at
    // the latest, as far as poll() is called by then. Any number may be under way.
    void send(coordination::ticket to, coordination::request what);

    // Events of `active` with a modification revision of `from` (at least 1) or later: a look's
    // `as_of` and one. Replaces the watch there is. Ends with one watch_broken, after which there
    // is no watch: if it was not established within the patience; if the stream ended, was silent
    // for too long, or told what cannot be; if etcd cancelled it, as it does when `from` is
    // compacted away, when the token expired, or when the member has no leader. Nothing is missed
    // before a watch_broken, and nothing is told twice.
    void watch(coordination::revision from);
    // Nothing of the watch comes out of a later poll(). Without a watch: does nothing.
    void stop_watching();

    // Returns as soon as there is news, when wake() was called (since the last poll(), or during
    // this one), or at `until`; time_point::max() is never. An `until` in the past still performs
    // the I/O that is ready. What is returned is in the order in which it was received.
    [[nodiscard]] std::vector<news> poll(coordination::time_point until);

    // Makes the poll() that sleeps, or else the next one, return. Any thread, any time while the
    // gateway lives.
    void wake() noexcept;

private:
    class shell;
    std::unique_ptr<shell> shell_;
};

}  // namespace monolock::etcd
