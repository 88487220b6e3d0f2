#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::server {

// What is told that a descriptor is ready. Each wait under way keeps it alive.
class readiness_handler
    : public boost::intrusive_ref_counter<readiness_handler, boost::thread_unsafe_counter> {
public:
    virtual ~readiness_handler() = default;
    virtual void on_readable() = 0;
    virtual void on_writable() = 0;
};

// The descriptors of one thread and what they wait for, over epoll. A connection is registered
// once, edge triggered: a wait costs no system call, and one look finds all that have become ready
// (docs/decisions/0018). Used by one thread alone.
class readiness_set {
public:
    enum class readiness : std::uint8_t { input, output };

    class watch;
    struct give_back {
        void operator()(watch* done) const noexcept;
    };
    using watch_ptr = std::unique_ptr<watch, give_back>;

    // Throws std::system_error.
    readiness_set();
    readiness_set(const readiness_set&) = delete;
    readiness_set& operator=(const readiness_set&) = delete;
    // Waits that are left are forgotten.
    ~readiness_set();

    // Null if the system refuses: epoll has a limit of its own. The descriptor is closed only after
    // the watch was given back. Throws std::bad_alloc.
    [[nodiscard]] watch_ptr add(int descriptor);
    // A listening socket that other sets watch, too. Calls who.on_readable() in each turn in which
    // a connection waits to be accepted, without being asked again. A new connection wakes one of
    // the sets that sleep, as a rule. Null and bad_alloc as above.
    [[nodiscard]] watch_ptr add_listening(int descriptor, readiness_handler& who);

    // Calls whoever was due, then looks what has become ready, a batch of it, and calls who waits
    // for that. Sleeps until there is something only if nobody was due and it is allowed to.
    void turn(bool may_sleep);

    // From now on nobody is called any more, also in a turn that is under way. Any thread.
    void stop() noexcept { stopped_.store(true, std::memory_order_release); }
    [[nodiscard]] bool is_stopped() const noexcept {
        return stopped_.load(std::memory_order_acquire);
    }

    // Whether the next turn has something to do that needs no event.
    [[nodiscard]] bool is_due() const noexcept { return !due_.empty(); }
    // How many turns there were.
    [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

private:
    // How many connections are served before the rest of the thread's work has its turn.
    static constexpr std::size_t batch_max = 128;

    using hook = boost::intrusive::list_member_hook<
        boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

public:
    // One descriptor in the set, and up to two waits for it.
    class watch {
    public:
        // Calls who.on_readable() once, in a later turn, when there is something to receive. Asking
        // twice before that is asking once. A receive may have to wait for the output, with TLS.
        void await_readable(readiness_handler& who, readiness until = readiness::input);
        // The same with who.on_writable(), when something can be sent.
        void await_writable(readiness_handler& who, readiness until = readiness::output);
        // Calls who.on_readable() in the next turn: what is to be received has left the socket.
        void readable_anyway(readiness_handler& who);

        // To be said after each receive that found the socket empty, or returned less than it had
        // room for: only what comes later is worth a wait then. Less is as good as empty, but for
        // a stream whose receives break off before all that is there.
        void found_empty() noexcept { input_ready_ = false; }
        void found_less() noexcept { input_ready_ = input_ready_ && (ended_ || breaks_off_); }

        // A Unix socket, whose receive ends behind bytes that bring a descriptor. (That of TCP ends
        // before urgent data, which the set sees by itself.)
        void expect_breaks() noexcept { breaks_off_ = true; }
        [[nodiscard]] bool breaks_off() const noexcept { return breaks_off_; }

        // No more input will come than there is, as far as the set was told.
        [[nodiscard]] bool has_ended() const noexcept { return ended_; }

        // Takes the descriptor out of the set although it stays open. What it waited for is
        // forgotten. Nothing but giving it back may follow.
        void let_go() noexcept;

    private:
        friend class readiness_set;

        watch(readiness_set& in, int descriptor) noexcept : set_{&in}, descriptor_{descriptor} {}

        void await_output();
        void make_due();
        void take_event(std::uint32_t what);
        void take_due();
        void call_reader();
        void call_writer();
        [[nodiscard]] std::uint32_t events() const noexcept;

        // Small: there is one for each session.
        readiness_set* set_;
        int descriptor_;
        bool listens_ : 1 = false;      // level triggered, and its wait never ends
        bool input_ready_ : 1 = false;  // as far as is known
        bool ended_ : 1 = false;  // no more input will come than there is: its end is there, too
        bool breaks_off_ : 1 = false;  // a short receive may have left something
        bool output_asked_ : 1 = false;
        bool given_back_ : 1 = false;
        bool in_due_ : 1 = false;  // the set's list of those to call has it
        bool reader_due_ : 1 = false;
        bool writer_due_ : 1 = false;
        readiness reader_until_ : 1 = readiness::input;
        readiness writer_until_ : 1 = readiness::output;
        boost::intrusive_ptr<readiness_handler> reader_;
        boost::intrusive_ptr<readiness_handler> writer_;
        hook in_set_;
    };

private:
    using watch_list =
        boost::intrusive::list<watch, boost::intrusive::member_hook<watch, hook, &watch::in_set_>,
                               boost::intrusive::constant_time_size<false>>;

    [[nodiscard]] watch_ptr add(std::unique_ptr<watch> made);
    void call_due();
    void look(bool may_sleep);
    void clean_up() noexcept;

    posix::descriptor epoll_;
    watch_list all_;
    // Given back. Destroyed at the end of a turn: until then it may hold an event of theirs, and a
    // handler that goes with its wait is not destroyed in the middle of its own call.
    watch_list retired_;
    std::vector<watch*> due_;      // to be called in the next turn
    std::vector<watch*> calling_;  // in this one
    std::array<epoll_event, batch_max> found_{};
    std::uint64_t turns_ = 0;
    std::atomic<bool> stopped_{false};
};

}  // namespace monolock::server
