#include "in_memory/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "in_memory/system_calls.hpp"

namespace monolock::bench::in_memory {

namespace {

constexpr std::uint32_t nobody = 0xFFFF'FFFF;

// Bits of a connection's state.
constexpr std::uint8_t client_gone = 1;     // no more input will come, and nobody reads
constexpr std::uint8_t server_closed = 2;   // or not accepted yet
constexpr std::uint8_t output_blocked = 4;  // a send found no room

constexpr std::chrono::seconds patience{30};

template <class Descriptor>
int check(Descriptor result, const char* what) {
    if (result < 0) {
        throw std::system_error{errno, std::generic_category(), what};
    }
    return static_cast<int>(result);
}

// For two counters that run on and wrap, and a ring of a power of two.
std::size_t distance(std::uint8_t from, std::uint8_t to) noexcept {
    return static_cast<std::uint8_t>(to - from);
}

}  // namespace

// Two cache lines. Each byte stream is a ring with one writer and one reader, the client's thread
// and that of the server which has the connection; only the readiness is under a lock.
struct alignas(64) network::connection {
    // Written by the client.
    std::atomic<std::uint8_t> input_end{0};
    std::atomic<std::uint8_t> output_begin{0};
    // Written by the server.
    std::atomic<std::uint8_t> input_begin{0};
    std::atomic<std::uint8_t> output_end{0};
    // Both.
    std::atomic<std::uint8_t> state{server_closed};

    // Changed under the guard of the set.
    std::atomic<std::uint8_t> set{0};
    bool queued = false;
    std::uint32_t events = 0;
    std::uint32_t next = nobody;
    std::uint32_t previous = nobody;
    epoll_data_t data{};

    std::array<std::byte, input_max> input{};
    std::array<std::byte, output_max> output{};
    std::array<std::atomic<clock::rep>, 4> moments{};  // by network::moment

    [[nodiscard]] std::uint32_t readiness() const noexcept {
        const std::uint8_t now = state.load();
        std::uint32_t what = 0;
        if (input_end.load() != input_begin.load()) {
            what |= EPOLLIN;
        }
        if ((now & client_gone) != 0) {
            what |= EPOLLIN | EPOLLRDHUP | EPOLLOUT;
        }
        if (distance(output_begin.load(), output_end.load()) < output_max) {
            what |= EPOLLOUT;
        }
        return what;
    }
};

// The in-memory connections of one epoll set, and those of them that have something to say.
struct network::poll_set {
    std::mutex guard;
    posix::descriptor wake;  // in the kernel's epoll set; readable when those who are ready are
                             // announced
    std::uint32_t first = nobody;
    std::uint32_t last = nobody;
    bool readable = false;
    bool announced = false;  // since somebody last looked
};

network::network(std::size_t connections)
    : size_{connections},
      backlog_ready_{check(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")} {
    void* const mapped = ::mmap(nullptr, size_ * sizeof(connection), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapped == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    connections_ = static_cast<connection*>(mapped);
    for (std::size_t i = 0; i < size_; ++i) {
        new (&connections_[i]) connection;
    }
    only_one = this;
}

network::~network() {
    only_one = nullptr;
    ::munmap(connections_, size_ * sizeof(connection));
}

std::size_t network::bytes_per_connection() noexcept {
    static_assert(sizeof(connection) == 128);
    static_assert(std::is_trivially_destructible_v<connection>);
    return sizeof(connection);
}

posix::descriptor network::listen() {
    posix::descriptor made{check(::fcntl(backlog_ready_.get(), F_DUPFD_CLOEXEC, 0), "a duplicate")};
    listening_.at(static_cast<std::size_t>(made.get())) = true;
    return made;
}

bool network::is_listening(int system_descriptor) const noexcept {
    const auto number = static_cast<std::size_t>(system_descriptor);
    return number < listening_.size() && listening_[number];
}

// --- clients

void network::connect(std::size_t number) {
    connection& made = connections_[number];
    if (number >= size_ || (made.state & server_closed) == 0) {
        throw std::logic_error{"this connection is in use"};
    }
    for (auto* const counter :
         {&made.input_begin, &made.input_end, &made.output_begin, &made.output_end, &made.state}) {
        *counter = 0;
    }
    const std::scoped_lock locked{backlog_guard_};
    backlog_.push_back(static_cast<std::uint32_t>(number));
}

void network::write(std::size_t number, std::span<const std::byte> bytes) {
    connection& to = connections_[number];
    std::uint8_t end = to.input_end;
    if (distance(to.input_begin, end) + bytes.size() > input_max) {
        throw std::logic_error{"the server does not receive what the client sends"};
    }
    for (const std::byte each : bytes) {
        to.input[end++ % input_max] = each;
    }
    to.input_end = end;
    raise(to);
}

std::size_t network::read(std::size_t number, std::span<std::byte> into) {
    connection& from = connections_[number];
    std::uint8_t begin = from.output_begin;
    const std::size_t count = std::min(distance(begin, from.output_end), into.size());
    for (std::byte& each : into.first(count)) {
        each = from.output[begin++ % output_max];
    }
    from.output_begin = begin;
    if ((from.state & output_blocked) != 0) {
        from.state &= static_cast<std::uint8_t>(~output_blocked);
        raise(from);
    }
    return count;
}

void network::hang_up(std::size_t number) {
    connection& gone = connections_[number];
    gone.state |= client_gone;
    raise(gone);
}

bool network::is_closed_by_server(std::size_t number) const {
    return (connections_[number].state & server_closed) != 0;
}

void network::announce() {
    const std::size_t sets = set_count_;
    for (std::size_t number = 1; number <= sets; ++number) {
        poll_set& set = *sets_[number];
        const std::scoped_lock locked{set.guard};
        if (set.first != nobody && !std::exchange(set.announced, true)) {
            set.readable = true;
            ::eventfd_write(set.wake.get(), 1);
        }
    }
    const std::scoped_lock locked{backlog_guard_};
    if (!backlog_.empty() && !std::exchange(backlog_announced_, true)) {
        backlog_readable_ = true;
        ::eventfd_write(backlog_ready_.get(), 1);
    }
}

void network::expect(std::size_t sends_and_closes) {
    awaited_ = static_cast<std::int64_t>(sends_and_closes);
}

void network::await() {
    if (!all_done_.try_acquire_for(patience)) {
        throw std::runtime_error{"the server does not answer"};
    }
}

void network::report_done() noexcept {
    if (const std::int64_t done = std::exchange(done_here, 0);
        done != 0 && awaited_.fetch_sub(done) == done) {
        all_done_.release();
    }
}

// --- what servers did when

void network::note(connection& on, moment what) noexcept {
    if (recording_.load(std::memory_order_relaxed)) {
        on.moments[static_cast<std::size_t>(what)] = clock::now().time_since_epoch().count();
    }
}

time_point network::when(std::size_t number, moment what) const {
    return time_point{
        clock::duration{connections_[number].moments[static_cast<std::size_t>(what)].load()}};
}

std::chrono::nanoseconds network::take_longest_turn() noexcept {
    return clock::duration{longest_turn_.exchange(0)};
}

// --- the system calls: bytes

network::connection& network::at(int descriptor) noexcept {
    return connections_[descriptor - first_descriptor];
}

int network::accept(sockaddr* from, socklen_t* size) {
    std::uint32_t number = nobody;
    {
        const std::scoped_lock locked{backlog_guard_};
        backlog_announced_ = false;
        if (!backlog_.empty()) {
            number = backlog_.front();
            backlog_.pop_front();
        }
        if (backlog_.empty() && std::exchange(backlog_readable_, false)) {
            eventfd_t ignored = 0;
            ::eventfd_read(backlog_ready_.get(), &ignored);
        }
    }
    if (number == nobody) {
        errno = EAGAIN;
        return -1;
    }
    if (from != nullptr) {
        constexpr std::uint32_t net_10 = 10U << 24U;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(net_10 + number);
        address.sin_port = htons(40'000);
        std::memcpy(from, &address, std::min<std::size_t>(sizeof address, *size));
        *size = sizeof address;
    }
    return first_descriptor + static_cast<int>(number);
}

ssize_t network::receive(int descriptor, std::span<std::byte> into, int flags) {
    connection& from = at(descriptor);
    // Before the bytes are looked for: what was sent before the end comes before the end.
    const bool ended = (from.state & client_gone) != 0;
    std::uint8_t begin = from.input_begin;
    const std::size_t count = std::min(distance(begin, from.input_end), into.size());
    if (count == 0) {
        if (ended) {
            note(from, moment::found_end);
            return 0;
        }
        errno = EAGAIN;
        return -1;
    }
    for (std::byte& each : into.first(count)) {
        each = from.input[begin++ % input_max];
    }
    if ((flags & MSG_PEEK) == 0) {
        from.input_begin.store(begin, std::memory_order_release);
    }
    note(from, moment::received);
    return static_cast<ssize_t>(count);
}

ssize_t network::send(int descriptor, std::span<const std::byte> bytes) {
    connection& to = at(descriptor);
    if ((to.state & client_gone) != 0) {
        return static_cast<ssize_t>(bytes.size());  // as the kernel, which learns of it later
    }
    std::uint8_t end = to.output_end;
    const auto room = [&] { return output_max - distance(to.output_begin, end); };
    if (room() < bytes.size()) {
        to.state |= output_blocked;  // and once more, since the client may have read meanwhile
    }
    const std::size_t count = std::min(room(), bytes.size());
    if (count == 0) {
        errno = EAGAIN;
        return -1;
    }
    for (const std::byte each : bytes.first(count)) {
        to.output[end++ % output_max] = each;
    }
    note(to, moment::sent);
    to.output_end.store(end, std::memory_order_release);
    ++done_here;
    return static_cast<ssize_t>(count);
}

// No client of a benchmark waits for the end of the stream alone.
int network::shut_down(int /*descriptor*/) {
    return 0;
}

int network::close(int descriptor) {
    connection& gone = at(descriptor);
    leave_set(gone);
    note(gone, moment::closed);
    gone.state |= server_closed;
    ++done_here;
    return 0;
}

// --- the system calls: readiness

network::poll_set* network::set_of(int system_epoll) noexcept {
    const auto place = static_cast<std::size_t>(system_epoll);
    return place < set_numbers_.size() ? sets_[set_numbers_[place]].get() : nullptr;
}

std::uint8_t network::find_or_make_set(int system_epoll) {
    const std::scoped_lock locked{making_sets_};
    std::atomic<std::uint8_t>& number = set_numbers_.at(static_cast<std::size_t>(system_epoll));
    if (number == 0) {
        auto made = std::make_unique<poll_set>();
        made->wake = posix::descriptor{check(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")};
        epoll_event what{.events = EPOLLIN, .data = {.ptr = made.get()}};
        check(system::epoll_control(system_epoll, EPOLL_CTL_ADD, made->wake.get(), &what),
              "epoll_ctl");
        sets_.at(set_count_ + 1) = std::move(made);
        number = static_cast<std::uint8_t>(++set_count_);
    }
    return number;
}

int network::control(int system_epoll, int operation, int descriptor, const epoll_event* what) {
    connection& of = at(descriptor);
    switch (operation) {
        case EPOLL_CTL_ADD:
        case EPOLL_CTL_MOD:
            return add(system_epoll, of, *what);
        case EPOLL_CTL_DEL:
            leave_set(of);
            return 0;
        default:
            errno = EINVAL;
            return -1;
    }
}

// What is ready already is an event, as with the kernel. Another set must have been left before.
int network::add(int system_epoll, connection& to, const epoll_event& what) {
    if ((what.events & EPOLLET) == 0) {
        errno = EINVAL;  // nothing here needs level-triggered connections
        return -1;
    }
    const std::uint8_t number = find_or_make_set(system_epoll);
    poll_set& set = *sets_[number];
    const std::scoped_lock locked{set.guard};
    to.events = what.events;
    to.data = what.data;
    to.set = number;
    if ((to.readiness() & to.events) != 0) {
        enqueue(set, to);
        if (!std::exchange(set.readable, true)) {
            ::eventfd_write(set.wake.get(), 1);
        }
    }
    return 0;
}

// A connection may move from one set to another while its client writes. Either the client sees the
// new set here, or add() sees what the client wrote.
void network::raise(connection& on) {
    while (const std::uint8_t number = on.set) {
        poll_set& set = *sets_[number];
        const std::scoped_lock locked{set.guard};
        if (on.set == number) {
            enqueue(set, on);
            return;
        }
    }
}

void network::enqueue(poll_set& set, connection& ready) {
    if (std::exchange(ready.queued, true)) {
        return;
    }
    const auto number = static_cast<std::uint32_t>(&ready - connections_);
    ready.next = nobody;
    ready.previous = set.last;
    (set.last == nobody ? set.first : connections_[set.last].next) = number;
    set.last = number;
}

void network::unlink(poll_set& set, connection& gone) noexcept {
    if (!std::exchange(gone.queued, false)) {
        return;
    }
    (gone.previous == nobody ? set.first : connections_[gone.previous].next) = gone.next;
    (gone.next == nobody ? set.last : connections_[gone.next].previous) = gone.previous;
}

void network::leave_set(connection& gone) noexcept {
    if (const std::uint8_t number = gone.set) {
        poll_set& set = *sets_[number];
        const std::scoped_lock locked{set.guard};
        unlink(set, gone);
        gone.set = 0;
    }
}

int network::wait(int system_epoll, std::span<epoll_event> into, int timeout_ms) {
    report_done();
    poll_set* const set = set_of(system_epoll);
    if (set != nullptr) {
        const std::scoped_lock locked{set->guard};
        timeout_ms = set->first == nobody ? timeout_ms : 0;
    }
    note_turn(clock::now());
    const int count = system::epoll_wait(system_epoll, into, timeout_ms);
    note_turn({});
    if (set == nullptr || count < 0) {
        return count;
    }
    const auto found = into.first(static_cast<std::size_t>(count));
    const auto others = std::remove_if(found.begin(), found.end(), [set](const epoll_event& each) {
        return each.data.ptr == set;
    });
    const auto others_count = static_cast<std::size_t>(others - found.begin());
    return static_cast<int>(others_count + take_ready(*set, into.subspan(others_count)));
}

std::size_t network::take_ready(poll_set& set, std::span<epoll_event> into) {
    const std::scoped_lock locked{set.guard};
    std::size_t count = 0;
    while (count < into.size() && set.first != nobody) {
        connection& next = connections_[set.first];
        unlink(set, next);
        if (const std::uint32_t what = next.readiness() & next.events; what != 0) {
            into[count++] = {.events = what, .data = next.data};
        }
    }
    set.announced = false;
    if (set.first == nobody && std::exchange(set.readable, false)) {
        eventfd_t ignored = 0;
        ::eventfd_read(set.wake.get(), &ignored);
    }
    return count;
}

// A turn of a loop is what happens from one answer of the kernel to the next question.
void network::note_turn(time_point until) noexcept {
    thread_local time_point since{};
    if (until == time_point{}) {
        since = clock::now();
        return;
    }
    if (since == time_point{}) {
        return;
    }
    const clock::rep lasted = (until - since).count();
    clock::rep longest = longest_turn_.load(std::memory_order_relaxed);
    while (lasted > longest && !longest_turn_.compare_exchange_weak(longest, lasted)) {
    }
}

}  // namespace monolock::bench::in_memory
