#include "cli/admin/watch_interrupts.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <system_error>
#include <vector>

#include "cli/admin/admin_error.hpp"
#include "cli/signal_state.hpp"

namespace monolock::cli {

namespace {

std::vector<int> without_ignored(std::span<const int> signals) {
    std::vector<int> out;
    for (const int number : signals) {
        struct sigaction now {};
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) {
            out.push_back(number);
        }
    }
    return out;
}

void block(const std::vector<int>& signals) noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);  // a write that fails says the same
    for (const int number : signals) {
        sigaddset(&set, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

[[noreturn]] void throw_system(const char* call) {
    throw std::system_error{errno, std::system_category(), call};
}

}  // namespace

watch_interrupts::watch_interrupts(std::span<const int> signals) {
    const std::vector<int> heeded = without_ignored(signals);
    block(heeded);
    signals_ = posix::descriptor{open_signal_descriptor(heeded)};
    any_ = posix::descriptor{::epoll_create1(EPOLL_CLOEXEC)};
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (!any_ || ::epoll_ctl(any_.get(), EPOLL_CTL_ADD, signals_.get(), &readable) != 0) {
        throw_system("epoll");
    }
    // Of a file nobody is the reader, and it is refused. Errors are told without being asked for.
    epoll_event nothing{.events = 0, .data = {}};
    if (::epoll_ctl(any_.get(), EPOLL_CTL_ADD, STDOUT_FILENO, &nothing) != 0 && errno != EPERM) {
        throw_system("epoll");
    }
}

std::optional<int> watch_interrupts::take() noexcept {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) {
        return std::nullopt;
    }
    return static_cast<int>(info.ssi_signo);
}

bool watch_interrupts::is_output_closed() noexcept {
    pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
    return ::poll(&output, 1, 0) > 0;
}

void watch_interrupts::sleep(std::chrono::milliseconds time) const {
    pollfd any{.fd = any_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&any, 1, static_cast<int>(time.count())) > 0) {
        throw interrupted{};
    }
}

bool watch_interrupts::print(std::string_view text) const {
    while (!text.empty()) {
        std::array<pollfd, 2> polled{{{STDOUT_FILENO, POLLOUT, 0}, {any_.get(), POLLIN, 0}}};
        if (::poll(polled.data(), polled.size(), -1) < 0) {
            continue;
        }
        if (polled[1].revents != 0) {
            throw interrupted{};
        }
        // So much is taken at once by what is ready.
        const ssize_t size =
            ::write(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (size < 0 && errno != EINTR && errno != EAGAIN) {
            return false;
        }
        text.remove_prefix(size < 0 ? 0 : static_cast<std::size_t>(size));
    }
    return true;
}

void watch_interrupts::suffer(int number) noexcept {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    ::raise(number);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);  // here it happens
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

}  // namespace monolock::cli
