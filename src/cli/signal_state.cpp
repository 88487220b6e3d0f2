#include "cli/signal_state.hpp"

#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace monolock::cli {

namespace {

// STOP and KILL cannot be caught. CHLD, PIPE, TTIN, TTOU and WINCH concern each process for itself.
constexpr std::array passed_on{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                               SIGUSR2, SIGALRM, SIGTSTP, SIGCONT};

bool is_ignored(int number) noexcept {
    struct sigaction now {};
    return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t set_of(const std::vector<int>& signals) noexcept {
    sigset_t out;
    sigemptyset(&out);
    for (const int number : signals) {
        sigaddset(&out, number);
    }
    return out;
}

}  // namespace

signal_state signal_state::capture() noexcept {
    signal_state out;
    pthread_sigmask(SIG_SETMASK, nullptr, &out.mask_);
    out.child_ignored_ = is_ignored(SIGCHLD);
    for (const int number : passed_on) {
        if (!is_ignored(number)) {
            out.forwarded_.push_back(number);
        }
    }
    return out;
}

bool signal_state::ignored_keyboard() const noexcept {
    return std::ranges::none_of(forwarded_,
                                [](int number) { return number == SIGINT || number == SIGQUIT; });
}

void signal_state::restore() const noexcept {
    if (child_ignored_) {
        signal(SIGCHLD, SIG_IGN);
    }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void block_for_wrapper(const signal_state& start) noexcept {
    signal(SIGCHLD, SIG_DFL);
    sigset_t blocked = set_of(start.forwarded());
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, SIGPIPE);  // a closed stderr must not end the wrapper
    sigaddset(&blocked, SIGTTOU);  // it moves the terminal while in the background
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

void block_for_guardian() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

int open_signal_descriptor(const std::vector<int>& signals) {
    const sigset_t set = set_of(signals);
    const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        throw std::system_error{errno, std::system_category(), "signalfd"};
    }
    return fd;
}

}  // namespace monolock::cli
