#include "cli/guardian.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <monolock/client.hpp>

#include "cli/admin/lock_text.hpp"
#include "cli/admin/who_has_it.hpp"
#include "cli/attempt.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/job.hpp"
#include "cli/loss_plan.hpp"
#include "config/duration.hpp"
#include "posix/boot_timer.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using namespace std::chrono_literals;

// The library lets go of a lost claim at its last confirmed moment, and a server that still hears
// us then passes the lock on at once. So the job is killed a little before, to be dead by then.
nanoseconds kill_lead(std::chrono::milliseconds lease) noexcept {
    return std::min<nanoseconds>(10ms, nanoseconds{lease} / 100);
}

// What one try may take where no waiting was asked for: a server that is well answers in far less.
constexpr std::chrono::milliseconds one_try{180};

// What asking for the owner may take once a wait is over: nothing to a person, and little to add to
// a limit that a program has set.
constexpr std::chrono::milliseconds ask_time{150};

// How often the wrapper is told the deadline, at least; heartbeats go out every quarter of a lease.
nanoseconds publish_interval(std::chrono::milliseconds lease) noexcept {
    return std::max<nanoseconds>(1ms, nanoseconds{lease} / 8);
}

// Waits until one of the descriptors is readable (a negative one is never) and says which are.
template <std::size_t Size>
std::array<bool, Size> wait_readable(const std::array<int, Size>& descriptors) noexcept {
    std::array<pollfd, Size> polled{};
    for (std::size_t index = 0; index < Size; ++index) {
        polled[index] = {.fd = descriptors[index], .events = POLLIN, .revents = 0};
    }
    while (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
    }
    std::array<bool, Size> out{};
    for (std::size_t index = 0; index < Size; ++index) {
        out[index] = polled[index].revents != 0;
    }
    return out;
}

posix::descriptor make_event() {
    posix::descriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!event) {
        throw std::system_error{errno, std::system_category(), "eventfd"};
    }
    return event;
}

client_options options_for(const run_options& options) {
    client_options out;
    out.address = options.server;
    out.tls = options.tls;
    if (has_server_list(options) && options.wait) {
        // A silent machine at the head of the list must not use up the wait. A little longer than
        // that, so that it is the wait that ends the attempt.
        const auto whole = std::chrono::ceil<std::chrono::milliseconds>(
            std::max<nanoseconds>(*options.wait, one_try) * 9 / 8);
        out.connect_timeout = std::min(out.connect_timeout, whole);
    }
    return out;
}

class guardian {
public:
    guardian(const run_context& context, const link& line)
        : context_{context},
          options_{context.options},
          line_{line},
          client_{options_for(options_)},
          lost_{make_event()},
          child_events_{open_signal_descriptor({SIGCHLD})} {}

    [[nodiscard]] int run() {
        try {
            const int status = guard();
            if (unsaid_) {
                say(*unsaid_);
            }
            return status;
        } catch (...) {
            end_job();  // whatever failed, the lock goes last
            throw;
        }
    }

private:
    [[nodiscard]] int guard() {
        if (const auto ended = acquire()) {
            return *ended;
        }
        // Copied out of the way of the main flow: the callback may come from the library's thread.
        const std::stop_callback on_loss{held_.loss_token(),
                                         [event = lost_.get()] { eventfd_write(event, 1); }};
        if (const auto ended = await_go()) {
            return *ended;
        }
        if (const auto ended = start()) {
            return *ended;
        }
        watch();
        return finish();
    }

    void say(const std::string& text) const { complain(about_lock(text)); }

    [[nodiscard]] std::string about_lock(const std::string& text) const {
        return "lock " + telemetry::quoted(options_.name) + ": " + text;
    }

    // While the job has to be stopped in time nobody is waited for: what is not taken at once is
    // said when the job is gone.
    void say_now_or_later(const std::string& text) {
        if (!complain(about_lock(text), 0ms)) {
            unsaid_ = text;
        }
    }

    // The next order; the wrapper's end is an order too, to end.
    [[nodiscard]] message next_order() {
        const auto received = line_.receive();
        wrapper_gone_ = !received;
        return received ? received->what : message{.kind = message_kind::deliver, .value = SIGKILL};
    }

    // Waits for the grant. Returns the exit status if there is none.
    [[nodiscard]] std::optional<int> acquire() {
        posix::boot_timer limit;
        if (options_.wait) {
            const auto end = boot_clock::now() + std::max<nanoseconds>(*options_.wait, one_try);
            limit.set(end.time_since_epoch());
        }
        const auto started = std::chrono::steady_clock::now();
        attempt trial{client_, options_};
        std::optional<int> stopped_by;
        bool time_is_up = false;
        for (bool done = false; !done;) {
            const auto ready =
                wait_readable<3>({wrapper_gone_ ? -1 : line_.descriptor(),
                                  time_is_up ? -1 : limit.descriptor(), trial.descriptor()});
            if (ready[0]) {
                stopped_by = stopped_by.value_or(next_order().value);
                trial.stop();
            }
            if (ready[1]) {
                time_is_up = true;
                if (*options_.wait > one_try) {
                    // Before the place in the queue is given up.
                    ask_who_has_it(std::chrono::steady_clock::now() + ask_time);
                }
                trial.stop();
            }
            done = ready[2];
        }
        auto outcome = trial.take();
        if (stopped_by) {
            return of_signal(*stopped_by);
        }
        if (outcome.held) {
            held_ = std::move(outcome.held);
            return std::nullopt;
        }
        if (is_taken(outcome)) {
            ask_who_has_it(started + one_try);
        }
        return explain_failure(outcome, time_is_up);
    }

    // One try, and somebody else owns it.
    static bool is_taken(const attempt::outcome& outcome) {
        return !outcome.failure || outcome.failure == errc::busy;
    }

    // An order of the wrapper ends the asking, and waits to be read.
    void ask_who_has_it(std::chrono::steady_clock::time_point give_up_at) {
        if (options_.admin) {
            owner_ = who_has_it(*options_.admin, options_.name, give_up_at, line_.descriptor());
        }
    }

    // A sentence about the lock, with its owner if known.
    void say_with_owner(const std::string& text) const {
        say(owner_ ? text + "; " + *owner_ : text);
    }

    [[nodiscard]] int explain_failure(const attempt::outcome& outcome, bool time_is_up) const {
        if (is_taken(outcome)) {
            say_with_owner(owner_ && owner_->starts_with(nobody_holds_it) ? "nothing is granted now"
                                                                          : "somebody else has it");
            return options_.conflict_exit_code;
        }
        if (time_is_up && outcome.failure == errc::stopped) {
            say_with_owner("not acquired within " +
                           config::format_duration(std::max<nanoseconds>(*options_.wait, one_try)));
            return options_.conflict_exit_code;
        }
        say(outcome.detail);
        return to_int(of_failed_acquire(outcome.failure));
    }

    // Hands the wrapper its duplicate of the claim and waits until it is ready for the command: it
    // may have been stopped from the keyboard, and a signal may be on its way.
    [[nodiscard]] std::optional<int> await_go() {
        if (held_.lost()) {
            return report_loss();
        }
        line_.send({.kind = message_kind::granted}, held_.native_handle());
        while (true) {
            const auto ready = wait_readable<2>({line_.descriptor(), lost_.get()});
            if (ready[1] || held_.lost()) {
                return report_loss();
            }
            const message order = next_order();
            if (order.kind == message_kind::go) {
                hand_terminal_over_ = order.value != 0;
                return std::nullopt;
            }
            if (order.kind == message_kind::deliver) {
                return of_signal(order.value);
            }
        }
    }

    [[nodiscard]] std::optional<int> start() {
        command what{
            options_.command,
            context_.environment,
            {"MONOLOCK_NAME=" + options_.name, "MONOLOCK_TOKEN=" + std::to_string(held_.token())}};
        // The wrapper enforces what it reads on the page from `starting` on: whatever becomes of
        // this process meanwhile, none of the command's is unwatched. As of now, because the grant
        // may be many leases old.
        context_.page.publish(held_.confirmed_until());
        line_.send({.kind = message_kind::starting});
        if (held_.lost()) {
            return report_loss();  // it may have stood still since the order came
        }
        auto result = what.start(context_.signals, context_.screen, hand_terminal_over_);
        if (result.error_number != 0) {
            say_cannot_run(result.error_number);
            return to_int(exit_code::system_failure);
        }
        // From here on, not only once the program has taken over: what is not yet executed is
        // watched too, so that it does not begin with the lock lost.
        exec_report_ = std::move(result.report);
        job_.emplace(result.process);
        context_.page.set_group(result.process);
        line_.send({.kind = message_kind::started, .value = result.process});
        let_go_of_standard_input_and_output();
        return std::nullopt;
    }

    void say_cannot_run(int error_number) const {
        complain("cannot run " + telemetry::quoted(options_.command.front()) + ": " +
                 std::system_category().message(error_number));
    }

    // The program has taken over, or could not.
    void take_exec_report() {
        exec_failure_ = command::failure_in(exec_report_);
        exec_report_.reset();
        if (exec_failure_ != 0) {
            say_cannot_run(exec_failure_);
        }
    }

    // Until the command has ended by itself (or could not be executed), or nothing of the job is
    // left.
    void watch() {
        posix::boot_timer timer;
        const nanoseconds lead = kill_lead(options_.lease);
        loss_plan plan{*options_.grace, held_.confirmed_until() - lead};
        while (!wrapper_gone_ && !job_->empty() && (!job_->status() || plan.started())) {
            const auto next =
                plan.started()
                    ? plan.next()
                    : std::min(plan.next(), boot_clock::now() + publish_interval(options_.lease));
            timer.set(next.time_since_epoch());
            const auto ready = wait_readable<5>({line_.descriptor(), child_events_.get(),
                                                 loss_reported_ ? -1 : lost_.get(),
                                                 timer.descriptor(), exec_report_.get()});
            if (ready[4]) {
                take_exec_report();
            }
            if (ready[0]) {
                obey(next_order());
            }
            if (ready[1]) {
                observe_job();
            }
            if (ready[2]) {
                plan.lose(boot_clock::now());
                reason_given_ = true;
            }
            if (context_.page.terminate_claimed()) {
                // Maybe by the wrapper, while this thread had no turn: the command is on its way to
                // its end, whatever was confirmed meanwhile, and what is left of the job with it.
                plan.lose(boot_clock::now());
            }
            context_.page.publish(held_.confirmed_until());
            plan.confirm(held_.confirmed_until() - lead);
            act(plan.take(boot_clock::now()));
            stopping_ = plan.started();
            if (ready[2]) {
                report_loss();
            }
        }
    }

    void obey(message order) const noexcept {
        if (wrapper_gone_) {
            return;  // finish() kills
        }
        if (order.kind == message_kind::deliver) {
            job_->signal_command(order.value);
        } else if (order.kind == message_kind::resume) {
            job_->signal_group(SIGCONT);
        }
    }

    void observe_job() noexcept {
        signalfd_siginfo ignored{};
        while (read(child_events_.get(), &ignored, sizeof ignored) > 0) {
        }
        const job::news news = job_->reap();
        if (!job_->has_group()) {
            context_.page.set_group(0);
        }
        if (news.stopped_by) {
            context_.page.begin_stop();
            line_.send({.kind = message_kind::stopped, .value = *news.stopped_by});
        }
        if (news.continued) {
            // A job that was continued only to obey TERM takes nobody's script along.
            continue_along(!context_.page.terminate_claimed());
        }
    }

    // Who stopped along with the command goes on along with it: the wrapper (one that has not come
    // to it yet may have been stopped by the same hand), and its group, if that stopped too.
    void continue_along(bool with_group) const noexcept {
        const deadline_page::stop stopped = context_.page.end_stop();
        if (stopped == deadline_page::stop::none || getppid() != context_.wrapper) {
            return;
        }
        const pid_t group = getpgid(context_.wrapper);
        const bool all =
            with_group && stopped == deadline_page::stop::followed_by_group && group > 1;
        kill(all ? -group : context_.wrapper, SIGCONT);
    }

    void act(loss_plan::action due) {
        switch (due) {
            case loss_plan::action::none:
                return;
            case loss_plan::action::terminate:
                if (exec_report_) {
                    // Nothing to tell: it has not begun, and must not begin any more.
                    return act(loss_plan::action::kill);
                }
                if (context_.page.claim_terminate()) {
                    job_->signal_group(SIGTERM);
                    job_->signal_group(SIGCONT);  // a stopped job must be able to obey
                }
                report_silence();
                return;
            case loss_plan::action::kill:
                kill_job();
                report_silence();
                return;
        }
    }

    // Why the command is stopped before the library calls the claim lost: once, and not if the loss
    // has been told.
    void report_silence() {
        if (!std::exchange(reason_given_, true)) {
            say_now_or_later("the server is silent; the command is stopped");
        }
    }

    int report_loss() { return report_loss(held_.loss()); }

    int report_loss(const std::error_code& why) {
        loss_reported_ = true;
        reason_given_ = true;
        say_now_or_later("lost: " + why.message());
        return to_int(exit_code::lock_lost);
    }

    void end_job() noexcept {
        if (job_) {
            kill_job();
            continue_along(false);
        }
    }

    // May wait long for the last of it, when the group has no number of its own any more: so the
    // wrapper must not be the one that sends TERM to it.
    void kill_job() noexcept {
        (void)context_.page.claim_terminate();
        job_->kill_all();
        context_.page.set_group(0);
    }

    // The lock goes last: whoever gets it next finds nothing of the job, unless the command ended
    // by itself and left something behind.
    [[nodiscard]] int finish() {
        if (wrapper_gone_) {
            kill_job();
        }
        context_.page.set_group(0);
        continue_along(false);  // a wrapper that is stopped is to tell the end
        if (exec_report_) {
            take_exec_report();  // its process may have been seen to end first
        }
        // The release looks once more, so this may be the first to hear of a loss.
        std::error_code loss;
        held_.release(loss);
        if (loss && !loss_reported_ && exec_failure_ == 0) {
            report_loss(loss);
        }
        if (stopping_ || loss_reported_ || wrapper_gone_) {
            return to_int(exit_code::lock_lost);
        }
        return exec_failure_ != 0 ? to_int(of_failed_exec(exec_failure_))
                                  : of_wait_status(*job_->status());
    }

    const run_context& context_;
    const run_options& options_;
    const link& line_;
    client client_;
    posix::descriptor
        lost_;  // readable once the claim is lost; closed after the callback that writes it
    posix::descriptor child_events_;
    lock held_;
    std::optional<job> job_;
    posix::descriptor exec_report_;  // until the program has taken over or could not
    int exec_failure_ = 0;           // from errno
    std::optional<std::string> unsaid_;
    std::optional<std::string> owner_;  // who has the lock instead, in words
    bool wrapper_gone_ = false;
    bool hand_terminal_over_ = false;
    bool loss_reported_ = false;
    bool reason_given_ = false;
    bool stopping_ = false;  // the command was told to stop for want of a confirmation
};

}  // namespace

int run_guardian(const run_context& context, const link& line) noexcept {
    int status = to_int(exit_code::system_failure);
    try {
        status = guardian{context, line}.run();
    } catch (const std::exception& failure) {
        complain(failure.what());
    }
    line.send_last({.kind = message_kind::finished, .value = status});
    return status;
}

}  // namespace monolock::cli
