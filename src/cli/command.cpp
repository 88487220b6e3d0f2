#include "cli/command.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace monolock::cli {

namespace {

constexpr std::string_view path_default = "/usr/local/bin:/bin:/usr/bin";

std::string_view key_of(std::string_view entry) {
    return entry.substr(0, entry.find('='));
}

std::vector<std::string> merged(char* const* environment,
                                const std::vector<std::string>& additions) {
    std::vector<std::string> out;
    for (; *environment != nullptr; ++environment) {
        const std::string_view key = key_of(*environment);
        const bool replaced =
            std::any_of(additions.begin(), additions.end(),
                        [key](const std::string& each) { return key_of(each) == key; });
        if (!replaced) {
            out.emplace_back(*environment);
        }
    }
    out.insert(out.end(), additions.begin(), additions.end());
    return out;
}

std::string_view path_of(const std::vector<std::string>& environment) {
    constexpr std::string_view prefix = "PATH=";
    for (const std::string_view entry : environment) {
        if (entry.starts_with(prefix)) {
            return entry.substr(prefix.size());
        }
    }
    return path_default;
}

std::vector<std::string> candidates_of(const std::string& program, std::string_view path) {
    if (program.empty()) {
        return {};
    }
    if (program.find('/') != std::string::npos) {
        return {program};
    }
    std::vector<std::string> out;
    while (true) {
        const std::size_t colon = path.find(':');
        const std::string_view folder = path.substr(0, colon);
        // An empty entry is the current folder, by tradition.
        out.push_back(std::string{folder.empty() ? "." : folder} + "/" + program);
        if (colon == std::string_view::npos) {
            return out;
        }
        path.remove_prefix(colon + 1);
    }
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        out.push_back(text.data());
    }
    out.push_back(nullptr);
    return out;
}

}  // namespace

command::command(std::vector<std::string> words, char* const* environment,
                 const std::vector<std::string>& additions)
    : words_{std::move(words)},
      environment_{merged(environment, additions)},
      candidates_{candidates_of(words_.front(), path_of(environment_))},
      argv_{pointers_to(words_)},
      envp_{pointers_to(environment_)} {}

// Returns only on failure, with the errno that tells most: a file that is there and may not be
// executed says more than one that is not there, and so does a folder of a network that is dead,
// behind which the search goes on as execvp's does. A file of unknown format is not handed to a
// shell, as execvp would.
int command::execute() const noexcept {
    int failure = ENOENT;
    for (const std::string& path : candidates_) {
        execve(path.c_str(), argv_.data(), envp_.data());
        if (errno == EACCES || errno == ESTALE || errno == ENODEV || errno == ETIMEDOUT) {
            failure = errno;
        } else if (errno != ENOENT && errno != ENOTDIR) {
            return errno;
        }
    }
    return failure;
}

// The child between fork and exec: async-signal-safe calls only. All signals are blocked until
// restore(), where one that came meanwhile takes effect.
void command::become(pid_t parent, const signal_state& signals, const terminal& screen,
                     bool hand_terminal_over, int report) const noexcept {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);  // the guardian died before the line above took hold
    }
    if (hand_terminal_over) {
        screen.give_to(getpid());
    }
    signals.restore();
    const int failure = execute();
    [[maybe_unused]] const ssize_t written = write(report, &failure, sizeof failure);
    _exit(1);
}

command::start_result command::start(const signal_state& signals, const terminal& screen,
                                     bool hand_terminal_over) {
    // Closed by a successful exec, which is how it is told from a failed one.
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
        return {.error_number = errno};
    }
    posix::descriptor reader{ends[0]};
    const posix::descriptor writer{ends[1]};
    const pid_t parent = getpid();
    const pid_t process = fork();
    if (process < 0) {
        return {.error_number = errno};
    }
    if (process == 0) {
        become(parent, signals, screen, hand_terminal_over, writer.get());
    }
    setpgid(process, process);  // by whoever of the two comes first
    return {.process = process, .report = std::move(reader)};
}

int command::failure_in(const posix::descriptor& report) noexcept {
    int failure = 0;
    ssize_t size = 0;
    do {
        size = read(report.get(), &failure, sizeof failure);
    } while (size < 0 && errno == EINTR);
    return size == static_cast<ssize_t>(sizeof failure) ? failure : 0;
}

}  // namespace monolock::cli
