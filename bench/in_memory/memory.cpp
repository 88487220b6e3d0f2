#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/lock_table.hpp"
#include "in_memory/cases.hpp"
#include "in_memory/clients.hpp"
#include "in_memory/stage.hpp"
#include "load/server_process.hpp"
#include "server/heap.hpp"
#include "server/readiness_set.hpp"
#include "server/socket_session.hpp"

namespace monolock::bench::in_memory {

namespace {

// With what the allocator adds in front and rounds up to.
std::size_t heap_bytes(std::size_t wanted) {
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): asked, not used
    const std::unique_ptr<void, decltype(&std::free)> block{std::malloc(wanted), &std::free};
    return ::malloc_usable_size(block.get()) + sizeof(std::size_t);
}

// What a table of so many pointers keeps for each of them, grown like the lock table's: a byte of
// hash beside each slot, and slots to spare.
double hash_table_bytes(std::size_t locks) {
    boost::unordered_flat_set<std::size_t> like;
    for (std::size_t i = 0; i < locks / core::lock_index::tables; ++i) {
        like.insert(i);
    }
    return static_cast<double>(like.bucket_count() * (sizeof(void*) + 1) *
                               core::lock_index::tables) /
           static_cast<double>(locks);
}

// Where each byte goes, as far as it can be told from the types.
figures parts(std::size_t sessions, bool waiters) {
    using server::socket_session;
    figures session{
        {"whole", sizeof(socket_session)},
        {"core::session", sizeof(core::session)},
        {"core::connected_session beyond", sizeof(core::connected_session) - sizeof(core::session)},
        {"server::connection_socket", sizeof(server::connection_socket)},
        {"identity", sizeof(std::string)},
        {"peer_address", sizeof(server::peer_address)},
        {"on the heap", heap_bytes(sizeof(socket_session))}};
    figures watch{{"whole", sizeof(server::readiness_set::watch)},
                  {"on the heap", heap_bytes(sizeof(server::readiness_set::watch))}};
    double sum = static_cast<double>(heap_bytes(sizeof(socket_session)) +
                                     heap_bytes(sizeof(server::readiness_set::watch)));
    figures all{{"socket_session", session}, {"readiness_set::watch", watch}};
    if (!waiters) {
        const std::size_t name = lock_name(0).size() + 1;
        all["named_lock"] = {{"whole", sizeof(core::named_lock)},
                             {"on the heap", heap_bytes(sizeof(core::named_lock))}};
        all["its name on the heap"] = heap_bytes(name);
        all["its slots in the hash table"] = hash_table_bytes(sessions);
        all["its place in the list of locks"] = sizeof(core::named_lock*);
        sum += static_cast<double>(heap_bytes(sizeof(core::named_lock)) + heap_bytes(name)) +
               hash_table_bytes(sessions) + sizeof(core::named_lock*);
    }
    all["sum"] = sum;
    return all;
}

}  // namespace

// Between two numbers of sessions, so that what the program needs anyway does not count.
figures run_memory(const memory_options& options) {
    const std::size_t few = std::min<std::size_t>(1000, options.sessions / 2);
    network net{options.sessions};
    const stage server{net, options.shards};
    clients all{net};
    const auto name = options.waiters ? std::optional{lock_name(0)} : std::nullopt;
    const server_process self{::getpid()};

    const auto leaving = clients::shuffled(options.sessions);  // the owner last

    const std::size_t before = self.resident_bytes();
    all.claim_all(0, few, long_lease, name);
    const std::size_t with_few = self.resident_bytes();
    static_cast<void>(net.take_longest_turn());
    all.claim_all(few, options.sessions, long_lease, name);
    const std::size_t peak = self.resident_bytes();
    const auto claims_longest_turn = net.take_longest_turn();
    all.leave_all(leaving);
    const std::size_t after = self.resident_bytes();
    const time_point trimming_at = clock::now();
    server::trim_heap();
    const auto trimming = clock::now() - trimming_at;
    const std::size_t trimmed = self.resident_bytes();

    const auto grown = static_cast<double>(peak - before);
    return {{"sessions", options.sessions},
            {"shards", options.shards},
            {"each with", options.waiters ? "a place in one queue" : "a lock"},
            {"per_session_bytes",
             static_cast<double>(peak - with_few) / static_cast<double>(options.sessions - few)},
            {"network_per_session_bytes", network::bytes_per_connection()},
            {"before_bytes", before},
            {"peak_bytes", peak},
            {"after_bytes", trimmed},
            {"kept_untrimmed_share", static_cast<double>(after - before) / grown},
            {"kept_share", static_cast<double>(trimmed - before) / grown},
            {"trim_ms", std::chrono::duration<double, std::milli>(trimming).count()},
            {"claims_longest_turn_ms",
             std::chrono::duration<double, std::milli>(claims_longest_turn).count()},
            {"parts_bytes", parts(options.sessions, options.waiters)}};
}

}  // namespace monolock::bench::in_memory
