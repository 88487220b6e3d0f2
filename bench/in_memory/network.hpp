#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <semaphore>
#include <span>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::bench::in_memory {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;

// A network in this process's memory, below the system calls: for more connections than any machine
// has descriptors. A server in the same process calls accept4, recv, send, epoll_wait and so on as
// it always does; the linker leads these calls here first (system_calls.cpp). Descriptors from
// first_descriptor on are connections of this network, all others are the kernel's. A server waits
// as in life: the kernel's epoll set, in which its in-memory connections are registered too,
// becomes readable when one of them has something to say.
//
// There is one network in a process, and one thread that plays all its clients. Clients name a
// connection by its number. What they do is noticed by servers that are awake; announce() wakes the
// others, so that a batch can be prepared and then served in one go.
class network {
public:
    static constexpr int first_descriptor = 1 << 24;
    static constexpr std::size_t input_max = 32;   // an ACQUIRE of a 20-byte name has 28
    static constexpr std::size_t output_max = 32;  // the longest frame of a benchmark has 23

    // What a server did last with a connection; kept only while recording.
    enum class moment : std::uint8_t { received, found_end, sent, closed };

    explicit network(std::size_t connections);
    network(const network&) = delete;
    network& operator=(const network&) = delete;
    ~network();

    // What the network itself keeps of a connection, all of it touched from the start.
    static std::size_t bytes_per_connection() noexcept;

    // A non-blocking descriptor to accept4 from; all share one backlog.
    [[nodiscard]] posix::descriptor listen();

    // --- for the clients' thread

    // A new connection, in the backlog. The number must be unused, or closed by the server.
    void connect(std::size_t number);
    // Bytes beyond what fits are an error of the benchmark.
    void write(std::size_t number, std::span<const std::byte> bytes);
    // What the server has sent, at most as much as there is room for.
    [[nodiscard]] std::size_t read(std::size_t number, std::span<std::byte> into);
    // The client's end, both ways.
    void hang_up(std::size_t number);
    [[nodiscard]] bool is_closed_by_server(std::size_t number) const;
    void announce();

    // await() returns when servers have made so many sends and closes since expect() and look for
    // more. Throws std::runtime_error when that takes too long.
    void expect(std::size_t sends_and_closes);
    void await();

    // --- what servers did when

    void record(bool on) noexcept { recording_ = on; }
    [[nodiscard]] time_point when(std::size_t number, moment what) const;

    // The longest time for which a server's loop did not ask the kernel for news, since the last
    // call of this function.
    [[nodiscard]] std::chrono::nanoseconds take_longest_turn() noexcept;

    // --- the system calls; descriptors are of this network except where the name says `system`

    [[nodiscard]] static network* running() noexcept { return only_one; }
    [[nodiscard]] bool is_listening(int system_descriptor) const noexcept;
    int accept(sockaddr* from, socklen_t* size);
    ssize_t receive(int descriptor, std::span<std::byte> into, int flags);
    ssize_t send(int descriptor, std::span<const std::byte> bytes);
    int shut_down(int descriptor);
    int close(int descriptor);
    int control(int system_epoll, int operation, int descriptor, const epoll_event* what);
    int wait(int system_epoll, std::span<epoll_event> into, int timeout_ms);

private:
    struct connection;
    struct poll_set;

    static constexpr std::size_t system_descriptors_max = 1024;
    static constexpr std::size_t sets_max = 15;  // number 0 is none

    [[nodiscard]] connection& at(int descriptor) noexcept;
    [[nodiscard]] poll_set* set_of(int system_epoll) noexcept;
    [[nodiscard]] std::uint8_t find_or_make_set(int system_epoll);
    int add(int system_epoll, connection& to, const epoll_event& what);
    [[nodiscard]] std::size_t take_ready(poll_set& set, std::span<epoll_event> into);
    void raise(connection& on);
    void enqueue(poll_set& set, connection& ready);
    void unlink(poll_set& set, connection& gone) noexcept;
    void leave_set(connection& gone) noexcept;
    void note(connection& on, moment what) noexcept;
    void report_done() noexcept;
    void note_turn(time_point until) noexcept;

    static inline network* only_one = nullptr;
    // Sends and closes of this thread, a server's, that await() has not heard of: a number that all
    // of them shared would cost more than what is measured.
    static inline thread_local std::int64_t done_here = 0;

    std::size_t size_;
    connection* connections_ = nullptr;  // size_ of them, mapped

    std::array<std::atomic<std::uint8_t>, system_descriptors_max> set_numbers_{};
    std::array<std::unique_ptr<poll_set>, sets_max + 1> sets_;
    std::atomic<std::size_t> set_count_{0};
    std::mutex making_sets_;

    std::mutex backlog_guard_;
    std::deque<std::uint32_t> backlog_;
    posix::descriptor backlog_ready_;  // readable while announced connections are in the backlog
    bool backlog_readable_ = false;
    bool backlog_announced_ = false;
    std::array<std::atomic<bool>, system_descriptors_max> listening_{};

    alignas(64) std::atomic<std::int64_t> awaited_{0};
    std::binary_semaphore all_done_{0};
    std::atomic<bool> recording_{false};
    std::atomic<clock::rep> longest_turn_{0};
};

}  // namespace monolock::bench::in_memory
