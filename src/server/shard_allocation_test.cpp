// A heartbeat allocates nothing, from the socket to the lock table and back: real shards, real
// sockets. This program counts what its threads allocate, one by one.
//
// OpenSSL is counted apart. With SSL_MODE_RELEASE_BUFFERS it gives the buffers of an idle
// connection back and takes them again for each record, which is what 17 KB a session cost.

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posix/descriptor.hpp"
#include "protocol/frames.hpp"
#include "support/shard_stage.hpp"
#include "support/shard_tls.hpp"

#if defined(__has_feature)
#define MONOLOCK_HAS_FEATURE(name) __has_feature(name)
#else
#define MONOLOCK_HAS_FEATURE(name) 0
#endif
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    MONOLOCK_HAS_FEATURE(address_sanitizer) || MONOLOCK_HAS_FEATURE(thread_sanitizer)
#define MONOLOCK_COUNTS_ALLOCATIONS 0
#else
#define MONOLOCK_COUNTS_ALLOCATIONS 1
#endif

#if MONOLOCK_COUNTS_ALLOCATIONS

namespace {

// Of the thread that asks.
struct allocation_counts {
    std::size_t ours = 0;
    std::size_t of_openssl = 0;       // all, …
    std::size_t openssl_buffers = 0;  // … and those that can hold a record
};
thread_local allocation_counts counted;

}  // namespace

// The C library's own names for what is replaced here. operator new comes to malloc, and Asio to
// aligned_alloc. Other libraries must find them in this program, whatever it hides of the rest.
#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT

void* malloc(std::size_t size) {
    ++counted.ours;
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
    ++counted.ours;
    return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
    ++counted.ours;
    return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++counted.ours;
    return __libc_memalign(alignment, size);
}
}
#pragma GCC visibility pop

namespace {

constexpr std::size_t record_bytes = 16'384;

void* openssl_malloc(std::size_t size, const char* /*file*/, int /*line*/) {
    ++counted.of_openssl;
    counted.openssl_buffers += size >= record_bytes ? 1U : 0U;
    return __libc_malloc(size);
}
void* openssl_realloc(void* memory, std::size_t size, const char* /*file*/, int /*line*/) {
    ++counted.of_openssl;
    return __libc_realloc(memory, size);
}
void openssl_free(void* memory, const char* /*file*/, int /*line*/) {
    std::free(memory);  // NOLINT(*-no-malloc)
}

// Before the first thing that OpenSSL allocates, or it refuses.
const bool openssl_is_counted =
    CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1;

}  // namespace

namespace monolock::server {
namespace {

using test::secured_client;
using test::shard_stage;

constexpr std::size_t sessions = 50;

std::string name_of(std::size_t index) {
    return "lock-" + std::to_string(index / 2);  // so every other session is a waiter
}

class plain_client {
public:
    explicit plain_client(posix::descriptor connection) : connection_{std::move(connection)} {}

    void claim(std::string_view name) {
        send(protocol::encode_acquire(60'000, name).bytes());
        EXPECT_TRUE(take_answer());
    }
    void beat() { send(protocol::heartbeat_frame); }
    // One frame; there is never more than one under way.
    [[nodiscard]] bool take_answer() {
        std::array<std::byte, protocol::acquired_bytes> frame{};
        return ::recv(connection_.get(), frame.data(), frame.size(), 0) > 0;
    }

private:
    void send(std::span<const std::byte> bytes) {
        EXPECT_EQ(::send(connection_.get(), bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
    }
    posix::descriptor connection_;
};

// What the shard's thread has allocated so far.
allocation_counts counts_of(shard& which) {
    std::promise<allocation_counts> answer;
    which.ask([&answer] { answer.set_value(counted); });
    return answer.get_future().get();
}

struct traffic {
    std::size_t rounds;    // each session beats once in a round
    std::size_t together;  // heartbeats under way at a time
    [[nodiscard]] std::size_t heartbeats() const { return rounds * sessions; }
};

// What they have the shard allocate.
template <class Beat, class TakeAnswer>
allocation_counts cost_of(const traffic& all, shard& which, const Beat& beat,
                          const TakeAnswer& take_answer) {
    const auto round = [&] {
        for (std::size_t first = 0; first < sessions; first += all.together) {
            for (std::size_t index = first; index < first + all.together; ++index) {
                beat(index);
            }
            for (std::size_t index = first; index < first + all.together; ++index) {
                take_answer(index);
            }
        }
    };
    round();  // containers reach their size
    const allocation_counts before = counts_of(which);
    EXPECT_GT(before.ours, 0U) << "nothing is counted";
    const std::uint64_t beats_before = which.counters().heartbeats();
    for (std::size_t number = 0; number < all.rounds; ++number) {
        round();
    }
    const allocation_counts after = counts_of(which);
    EXPECT_EQ(which.counters().heartbeats() - beats_before, all.heartbeats());
    return {.ours = after.ours - before.ours,
            .of_openssl = after.of_openssl - before.of_openssl,
            .openssl_buffers = after.openssl_buffers - before.openssl_buffers};
}

class shard_allocations : public testing::TestWithParam<std::size_t> {};

TEST_P(shard_allocations, none_for_a_heartbeat) {
    shard_stage running{{}};
    std::vector<plain_client> clients;
    for (std::size_t index = 0; index < sessions; ++index) {
        clients.emplace_back(running.connect()).claim(name_of(index));
    }
    const allocation_counts spent = cost_of(
        {.rounds = 200, .together = GetParam()}, running.at(0),
        [&](std::size_t index) { clients[index].beat(); },
        [&](std::size_t index) { EXPECT_TRUE(clients[index].take_answer()); });
    EXPECT_EQ(spent.ours, 0U);
    EXPECT_EQ(spent.of_openssl, 0U);
}

TEST_P(shard_allocations, none_of_ours_for_a_heartbeat_over_tls) {
    ASSERT_TRUE(openssl_is_counted);
    test::certificate_authority authority;
    shard_stage running{
        {.access = {}, .tls = test::tls_setting_of(1, authority, authority.certificate())}};
    const test::credentials me = authority.issue({.common_names = {"me"}});
    std::vector<std::unique_ptr<secured_client>> clients;
    for (std::size_t index = 0; index < sessions; ++index) {
        clients.push_back(std::make_unique<secured_client>(running.connect(), me));
        clients.back()->claim(name_of(index));
        EXPECT_EQ(clients.back()->next(), index % 2 == 0 ? "ACQUIRED" : "WAITING");
    }
    const traffic all{.rounds = 40, .together = GetParam()};
    const allocation_counts spent = cost_of(
        all, running.at(0), [&](std::size_t index) { clients[index]->beat(); },
        [&](std::size_t index) {
            EXPECT_EQ(clients[index]->next(), index % 2 == 0 ? "ACQUIRED" : "WAITING");
        });
    EXPECT_EQ(spent.ours, 0U);
    EXPECT_LE(spent.openssl_buffers, 2 * all.heartbeats()) << "one to read and one to write";
    RecordProperty("openssl_allocations_per_heartbeat",
                   std::to_string(static_cast<double>(spent.of_openssl) /
                                  static_cast<double>(all.heartbeats())));
}

INSTANTIATE_TEST_SUITE_P(one_and_many_at_a_time, shard_allocations,
                         testing::Values(std::size_t{1}, sessions));

}  // namespace
}  // namespace monolock::server

#else

TEST(shard_allocations, cannot_be_counted) {
    GTEST_SKIP() << "a sanitizer, or another C library, has an allocator of its own";
}

#endif
