#include "server/audit_log.hpp"

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "server/audit_file.hpp"
#include "server/audit_writer.hpp"

namespace monolock::server {

namespace {

using clock = std::chrono::steady_clock;
using telemetry::log_level;

// Events of so long go out in one write, so that a busy server pays for no wake-up an event.
constexpr std::chrono::milliseconds gather_time{5};
// After a refusal the disk is asked again so often.
constexpr std::chrono::milliseconds retry_pause{100};
// A pipe that is full for a moment is nothing to report.
constexpr std::chrono::seconds full_time_max{1};
constexpr std::chrono::minutes complaint_interval{1};
// What finish() gives the thread beyond its time, before it takes it to be stuck in a write.
constexpr std::chrono::milliseconds stuck_time_max{500};

config::parsed<std::unique_ptr<audit_sink>> open_file(const std::string& path) {
    auto file = audit_file::open(path);
    if (!file) {
        return file.error();
    }
    return std::unique_ptr<audit_sink>{*std::move(file)};
}

// The diagnostic of a path, for people.
config::diagnostic about(const std::string& path, const config::diagnostic& why) {
    return {"audit log " + path + ": " + why.text};
}

std::unique_ptr<audit_sink> open_or_throw(const audit_log::opener& open, const std::string& path) {
    auto sink = open(path);
    if (!sink) {
        throw std::runtime_error{about(path, sink.error()).text};
    }
    return *std::move(sink);
}

// An event of now.
audit_entry entry_about(const audit_subject& who, audit_entry::kind what) {
    return {.what = what,
            .time = std::chrono::system_clock::now(),
            .peer = who.peer,
            .lock = who.lock,
            .identity = who.identity};
}

}  // namespace

// What the shards and the thread share. Everything under "guarded" is under mutex_, which is held
// for moments only: never while a line is made or written, and no other lock is taken under it.
class audit_log::worker {
public:
    worker(std::string path, logger& log, opener open, audit_queue::limits bounds)
        : path_{std::move(path)},
          open_{std::move(open)},
          writer_{open_or_throw(open_, path_)},
          queue_{bounds},
          log_{&log} {}

    void record(const audit_entry& entry);
    [[nodiscard]] config::checked<std::string> reopen();
    // Asks the thread to end; whether it has, in time.
    [[nodiscard]] bool end_within(core::nanoseconds time_max);
    // The thread is left to itself: it must not use the log, which ends before it may.
    void abandon();
    // The thread has ended.
    void report_what_is_left();

    [[nodiscard]] std::uint64_t lost_events() const;
    [[nodiscard]] bool is_refused() const;

    // The thread's function.
    void run();

private:
    using lock = std::unique_lock<std::mutex>;

    [[nodiscard]] std::uint64_t waiting() const noexcept { return queue_.count() + in_hand_; }
    void await_work(lock& held);
    void write_some(lock& held);
    void note_outcome(int error, clock::time_point now);
    void report_unwritten(std::uint64_t events);
    // With mutex_ held.
    void refuse(std::string_view why, clock::time_point now);
    void report_recovery(clock::time_point now);

    const std::string path_;
    const opener open_;

    // The thread's own; others may look only once it has ended.
    audit_writer writer_;
    std::optional<clock::time_point> refused_since_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;

    // guarded
    audit_queue queue_;
    logger* log_;  // null once abandoned
    std::optional<clock::time_point> end_by_;
    std::unique_ptr<audit_sink> next_sink_;  // to go on in
    bool sleeping_ = false;                  // the thread waits for a first entry
    bool ended_ = false;
    std::size_t in_hand_ = 0;  // entries that the thread has taken and not written yet
    bool refused_ = false;     // it cannot be written
    bool complained_ = false;  // and the diagnostic log says so
    std::uint64_t lost_told_ = 0;
    log_gate complaints_{complaint_interval};
    log_gate recoveries_{complaint_interval};  // from what was not complained of
};

void audit_log::worker::record(const audit_entry& entry) {
    bool wake = false;
    {
        const std::lock_guard held{mutex_};
        // The thread may be stuck in a write, so it is for the one who sees the loss to report it.
        if (!queue_.push(entry)) {
            refuse("the buffer is full", clock::now());
        }
        wake = std::exchange(sleeping_, false);
    }
    if (wake) {
        changed_.notify_all();
    }
}

// Opened here and not by the thread, which may be busy with the old file for long, and so that the
// caller hears what came of it.
config::checked<std::string> audit_log::worker::reopen() {
    auto sink = open_(path_);
    if (!sink) {
        return config::diagnostics{about(path_, sink.error())};
    }
    const std::lock_guard held{mutex_};
    next_sink_ = *std::move(sink);
    changed_.notify_all();
    return path_;
}

bool audit_log::worker::end_within(core::nanoseconds time_max) {
    lock held{mutex_};
    end_by_ = clock::now() + time_max;
    changed_.notify_all();
    return changed_.wait_until(held, *end_by_ + stuck_time_max, [this] { return ended_; });
}

void audit_log::worker::abandon() {
    const std::lock_guard held{mutex_};
    report_unwritten(waiting());
    log_ = nullptr;
}

void audit_log::worker::report_what_is_left() {
    if (const std::uint64_t left = queue_.count() + writer_.lines_left(); left > 0) {
        report_unwritten(left);
    }
}

void audit_log::worker::report_unwritten(std::uint64_t events) {
    log_->write(log_level::error, "audit log: events were not written before the end",
                {{.key = "file", .value = path_}, {.key = "events", .value = events}});
}

std::uint64_t audit_log::worker::lost_events() const {
    const std::lock_guard held{mutex_};
    return queue_.lost();
}

bool audit_log::worker::is_refused() const {
    const std::lock_guard held{mutex_};
    return refused_;
}

void audit_log::worker::run() {
    lock held{mutex_};
    while (true) {
        await_work(held);
        if (auto next = std::exchange(next_sink_, nullptr)) {
            held.unlock();
            writer_.switch_to(std::move(next));
            held.lock();
        }
        if (end_by_ && writer_.idle() && queue_.empty()) {
            break;
        }
        write_some(held);
        if (end_by_ && clock::now() >= *end_by_) {
            break;
        }
    }
    ended_ = true;
    changed_.notify_all();
}

void audit_log::worker::await_work(lock& held) {
    if (!writer_.idle() || !queue_.empty() || next_sink_ || end_by_) {
        return;
    }
    sleeping_ = true;
    changed_.wait(held, [this] { return !sleeping_ || next_sink_ || end_by_; });
    sleeping_ = false;
    changed_.wait_for(held, gather_time, [this] { return next_sink_ || end_by_; });
}

void audit_log::worker::write_some(lock& held) {
    if (writer_.idle()) {
        const auto batch = queue_.take(std::chrono::system_clock::now());
        if (!batch) {
            return;
        }
        in_hand_ = batch->count();
        held.unlock();
        writer_.add(*batch);
    } else {
        held.unlock();
    }
    const int error = writer_.write();
    note_outcome(error, clock::now());
    if (error != 0) {
        writer_.sink().wait(retry_pause);
    }
    held.lock();
    if (error == 0) {
        in_hand_ = 0;
    }
}

// A full pipe (EAGAIN) may be a reader that is slow; anything else is the disk's refusal.
void audit_log::worker::note_outcome(int error, clock::time_point now) {
    const std::lock_guard held{mutex_};
    if (error == 0) {
        refused_since_.reset();
        report_recovery(now);
        return;
    }
    if (!refused_since_) {
        refused_since_ = now;
    }
    if (error != EAGAIN) {
        refuse(std::generic_category().message(error), now);
    } else if (now - *refused_since_ > full_time_max) {
        refuse("its reader takes nothing", now);
    }
}

// The gate holds back lines, not what is so: a later call of the same outage may say it.
void audit_log::worker::refuse(std::string_view why, clock::time_point now) {
    refused_ = true;
    if (log_ != nullptr && complaints_.pass(now)) {
        complained_ = true;
        lost_told_ = queue_.lost();
        log_->write(log_level::error, "audit log cannot be written, events wait in memory",
                    {{.key = "file", .value = path_},
                     {.key = "reason", .value = why},
                     {.key = "waiting", .value = waiting()},
                     {.key = "lost", .value = lost_told_}});
    }
}

// Once all that waited is written, so that the number of the lost is final. What was over before a
// complaint was due is told here. A loss always: it takes a full buffer, so such lines are few.
void audit_log::worker::report_recovery(clock::time_point now) {
    if (!refused_ || !queue_.empty()) {
        return;
    }
    refused_ = false;
    const bool due =
        std::exchange(complained_, false) || queue_.lost() > lost_told_ || recoveries_.pass(now);
    if (log_ != nullptr && due) {
        lost_told_ = queue_.lost();
        log_->write(log_level::info, "audit log is written again",
                    {{.key = "file", .value = path_}, {.key = "lost", .value = lost_told_}});
    }
}

audit_log::audit_log(const std::string& path, logger& log) : audit_log{path, log, open_file, {}} {}

audit_log::audit_log(std::string path, logger& log, opener open, audit_queue::limits bounds)
    : worker_{std::make_shared<worker>(std::move(path), log, std::move(open), bounds)},
      thread_{[worker = worker_] { worker->run(); }} {
    ::pthread_setname_np(thread_.native_handle(), "audit");
}

audit_log::~audit_log() {
    if (thread_.joinable()) {
        finish(retry_pause);
    }
}

void audit_log::granted(const audit_subject& who, core::fencing_token token,
                        core::nanoseconds waited) {
    audit_entry entry = entry_about(who, audit_entry::kind::granted);
    entry.number = token.value;
    entry.span = std::chrono::floor<std::chrono::milliseconds>(waited);
    worker_->record(entry);
}

void audit_log::released(const audit_subject& who, core::fencing_token token,
                         core::nanoseconds held, core::end_reason why) {
    audit_entry entry = entry_about(who, audit_entry::kind::released);
    entry.reason = why;
    entry.number = token.value;
    entry.span = std::chrono::floor<std::chrono::milliseconds>(held);
    worker_->record(entry);
}

void audit_log::denied(const audit_subject& who) {
    worker_->record(entry_about(who, audit_entry::kind::denied));
}

void audit_log::force_release(const audit_subject& who, core::fencing_token token) {
    audit_entry entry = entry_about(who, audit_entry::kind::force_release);
    entry.number = token.value;
    worker_->record(entry);
}

void audit_log::kick_waiter(const audit_subject& who) {
    worker_->record(entry_about(who, audit_entry::kind::kick_waiter));
}

config::checked<std::string> audit_log::reopen() {
    return worker_->reopen();
}

void audit_log::finish(core::nanoseconds time_max) {
    if (worker_->end_within(time_max)) {
        thread_.join();
        worker_->report_what_is_left();
    } else {
        // Stuck in a write that does not return. The process ends without it.
        worker_->abandon();
        thread_.detach();
    }
}

std::uint64_t audit_log::lost_events() const {
    return worker_->lost_events();
}

bool audit_log::is_refused() const {
    return worker_->is_refused();
}

}  // namespace monolock::server
