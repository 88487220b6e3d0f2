#include "cli/wrapper.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/console.hpp"
#include "cli/deadline_page.hpp"
#include "cli/exit_code.hpp"
#include "cli/guardian.hpp"
#include "cli/job.hpp"
#include "cli/link.hpp"
#include "cli/loss_plan.hpp"
#include "cli/signal_state.hpp"
#include "cli/terminal.hpp"
#include "posix/boot_timer.hpp"

namespace monolock::cli {

namespace {

using namespace std::chrono_literals;

// How much later than the guardian the wrapper acts on the same deadline: enough that it never
// forestalls a guardian which is merely slow, little against the fifth of a lease that is to spare.
nanoseconds patience(std::chrono::milliseconds lease) noexcept {
    return std::min<nanoseconds>(50ms, nanoseconds{lease} / 20);
}

class wrapper {
public:
    wrapper(const run_context& context, link line, pid_t guardian)
        : context_{context},
          line_{std::move(line)},
          guardian_{guardian},
          in_background_{context.signals.ignored_keyboard() && isatty(STDIN_FILENO) == 0},
          signals_{open_signal_descriptor(context.signals.forwarded())} {}

    [[nodiscard]] int run() {
        while (!ended_) {
            const auto next = backstop_ ? backstop_->next() : boot_clock::time_point::max();
            timer_.set(next.time_since_epoch());
            std::array<pollfd, 3> polled{{{line_.descriptor(), POLLIN, 0},
                                          {signals_.get(), POLLIN, 0},
                                          {timer_.descriptor(), POLLIN, 0}}};
            poll(polled.data(), polled.size(), -1);
            // Signals first: one that came before a grant was read must reach the guardian before
            // the answer to the grant does.
            if (polled[1].revents != 0) {
                take_signals();
            }
            if (polled[0].revents != 0) {
                take_message();
            }
            if (polled[2].revents != 0) {
                enforce_deadline();
            }
        }
        take_terminal_back();
        waitpid(guardian_, nullptr, 0);
        return *ended_;
    }

private:
    void take_signals() {
        signalfd_siginfo info{};
        while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
            const int number = static_cast<int>(info.ssi_signo);
            if (number == SIGCONT) {
                resume_command();
            } else if (number == SIGTSTP && command_ == 0) {
                kill(getpid(), SIGTSTP);
                take_stop();
            } else {
                line_.send({.kind = message_kind::deliver, .value = number});
            }
        }
    }

    void take_message() {
        auto received = line_.receive();
        if (!received) {
            return bury_guardian();
        }
        switch (const int value = received->what.value; received->what.kind) {
            case message_kind::granted:
                claim_ = std::move(received->descriptor);
                terminal_given_ = may_give_terminal();
                line_.send({.kind = message_kind::go, .value = terminal_given_ ? 1 : 0});
                return;
            case message_kind::starting:
                backstop_.emplace(*context_.options.grace, last_moment());
                return;
            case message_kind::started:
                command_ = value;
                return let_go_of_standard_input_and_output();
            case message_kind::stopped:
                return stop_along(value);
            case message_kind::finished:
                ended_ = value;
                return;
            case message_kind::go:
            case message_kind::deliver:
            case message_kind::resume:
                return;  // ours to send
        }
    }

    // The guardian died with the run unfinished. What it left falls to this process, a subreaper
    // too; the duplicate of the claim is closed after that, by the exit.
    void bury_guardian() {
        waitpid(guardian_, nullptr, 0);
        kill_descendants(context_.page.group());
        if (guardian_was_late_) {
            complain(
                "the guardian process did not act at the deadline: the lock may be lost, and what "
                "ran was killed");
        } else {
            complain(claim_ ? "the guardian process was killed; the command was killed with it"
                            : "the guardian process was killed");
        }
        ended_ = to_int(claim_ ? exit_code::lock_lost : exit_code::system_failure);
    }

    // --- deadline ---

    [[nodiscard]] boot_clock::time_point last_moment() const noexcept {
        return context_.page.confirmed_until() + patience(context_.options.lease);
    }

    void enforce_deadline() noexcept {
        backstop_->confirm(last_moment());
        switch (backstop_->take(boot_clock::now())) {
            case loss_plan::action::none:
                return;
            case loss_plan::action::terminate:
                if (const pid_t group = context_.page.group();
                    group > 0 && context_.page.claim_terminate()) {
                    kill(-group, SIGTERM);
                    kill(-group, SIGCONT);
                }
                return;
            case loss_plan::action::kill:
                // A guardian that is still there either does not run or waits for a process that
                // does not die. Its end comes back as the end of the line.
                guardian_was_late_ = true;
                kill(guardian_, SIGKILL);
                return;
        }
    }

    // --- terminal and job control ---

    // What a script without job control has started with "&" is in the terminal's group, beside the
    // script that goes on there.
    [[nodiscard]] bool may_give_terminal() const noexcept {
        return !in_background_ && context_.screen.is_ours();
    }

    void take_terminal_back() noexcept {
        // Only from the command: a shell that took the terminal meanwhile keeps it.
        if (std::exchange(terminal_given_, false) && context_.screen.belongs_to(command_)) {
            context_.screen.give_to(getpgrp());
        }
    }

    void resume_command() noexcept {
        if (command_ == 0) {
            return;
        }
        context_.page.leave_stop();
        if (may_give_terminal()) {
            terminal_given_ = true;
            context_.screen.give_to(command_);
        }
        line_.send({.kind = message_kind::resume});
    }

    // The command was stopped. If there is a terminal a shell may be waiting to see this process
    // stop too; without one nobody is.
    void stop_along(int signal_number) noexcept {
        using stop = deadline_page::stop;
        const bool had_terminal = terminal_given_;
        // The terminal, a key press at it for one, would have stopped all of this process's group.
        // A SIGSTOP is somebody's who means the command, and who may continue it and nobody else.
        const stop how =
            had_terminal && signal_number != SIGSTOP ? stop::followed_by_group : stop::followed;
        if (!context_.screen.present() || !context_.page.follow_stop(how)) {
            return;
        }
        take_terminal_back();
        const pid_t whom = how == stop::followed_by_group ? 0 : getpid();
        kill(whom, SIGTSTP);
        // From here on the guardian's SIGCONT does away with this process's SIGTSTP. One that came
        // before was done away with by it.
        if (!context_.page.follows(how)) {
            kill(whom, SIGCONT);
        }
        // If nobody could stop us there is no shell that could continue us, and the key press is
        // ignored, as the kernel does for a group without a shell.
        if (take_stop() || (had_terminal && signal_number == SIGTSTP)) {
            resume_command();
        }
    }

    // Lets a SIGTSTP that is pending stop this process. Returns when it was continued, or false at
    // once if it could not be stopped: the signal is ignored, or no shell is there.
    bool take_stop() noexcept {
        sigset_t keyboard_stop;
        sigemptyset(&keyboard_stop);
        sigaddset(&keyboard_stop, SIGTSTP);
        pthread_sigmask(SIG_UNBLOCK, &keyboard_stop, nullptr);  // stops here
        pthread_sigmask(SIG_BLOCK, &keyboard_stop, nullptr);
        sigset_t continuation;
        sigemptyset(&continuation);
        sigaddset(&continuation, SIGCONT);
        constexpr timespec no_wait{};
        return sigtimedwait(&continuation, nullptr, &no_wait) == SIGCONT;
    }

    const run_context& context_;
    link line_;
    pid_t guardian_;
    bool in_background_;  // of a shell without job control
    bool guardian_was_late_ = false;
    posix::descriptor signals_;
    posix::boot_timer timer_;
    posix::descriptor claim_;            // the duplicate, from the grant on
    pid_t command_ = 0;                  // and its group, once started
    std::optional<loss_plan> backstop_;  // once it is about to be
    bool terminal_given_ = false;
    std::optional<int> ended_;
};

// In the forked child; the wrapper's end of the line must be closed already.
int become_guardian(const run_context& context, const link& line) {
    setpgid(0, 0);
    block_for_guardian();
    forget_spared_children();
    become_subreaper();
    return run_guardian(context, line);
}

}  // namespace

int run_wrapper(const run_options& options, char* const* environment) {
    const signal_state signals = signal_state::capture();
    block_for_wrapper(signals);
    spare_present_children();
    become_subreaper();
    const terminal screen;
    deadline_page page;
    const run_context context{.options = options,
                              .signals = signals,
                              .screen = screen,
                              .page = page,
                              .environment = environment,
                              .wrapper = getpid()};
    std::pair<link, link> ends = link::make();
    link& ours = ends.first;
    link& guardians = ends.second;
    const pid_t guardian = fork();
    if (guardian < 0) {
        throw std::system_error{errno, std::system_category(), "fork"};
    }
    if (guardian == 0) {
        ours.close();
        return become_guardian(context, guardians);
    }
    guardians.close();
    return wrapper{context, std::move(ours), guardian}.run();
}

}  // namespace monolock::cli
