#include "cli/job.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "posix/descriptor.hpp"

namespace monolock::cli {

namespace {

// How long to wait for a death before looking for descendants that turned up meanwhile.
constexpr timespec rescan_interval{.tv_sec = 0, .tv_nsec = 10'000'000};

struct close_folder {
    void operator()(DIR* folder) const noexcept { closedir(folder); }
};

std::optional<pid_t> parse_number(std::string_view text) noexcept {
    pid_t number = 0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || stop == text.data()) {
        return std::nullopt;
    }
    return number;
}

// From /proc/PID/stat: "PID (name) state ppid …", where the name may hold anything.
std::optional<pid_t> parent_of(pid_t process) noexcept {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(process));
    const posix::descriptor file{open(path.data(), O_RDONLY | O_CLOEXEC)};
    std::array<char, 256> text{};
    const ssize_t size = file ? read(file.get(), text.data(), text.size()) : -1;
    if (size <= 0) {
        return std::nullopt;
    }
    const std::string_view line{text.data(), static_cast<std::size_t>(size)};
    constexpr std::size_t to_parent = std::string_view{") S "}.size();
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string_view::npos || name_end + to_parent >= line.size()) {
        return std::nullopt;
    }
    return parse_number(line.substr(name_end + to_parent));
}

// See spare_present_children.
struct earlier_children {
    bool any = false;          // as the kernel says, whatever /proc shows
    std::vector<pid_t> known;  // as /proc shows
};

earlier_children& spared() noexcept {
    static earlier_children children;
    return children;
}

// Whether this process has such a child, dead ones that wait to be reaped included.
bool has_child(idtype_t kind, pid_t number) noexcept {
    siginfo_t ignored{};
    return waitid(kind, static_cast<id_t>(number), &ignored, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// Calls `seen` with every child of this process. (The kernel's own list of children is a build
// option of it, so all processes are looked at.) A child that nobody but us reaps keeps its number
// meanwhile.
template <class Seen>
void for_each_child(Seen seen) {
    const std::unique_ptr<DIR, close_folder> folder{opendir("/proc")};
    if (!folder) {
        return;
    }
    const pid_t self = getpid();
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own
    while (const dirent* const entry = readdir(folder.get())) {
        const auto process = parse_number(entry->d_name);
        // The second look is for a /proc of another namespace, where numbers mean others.
        if (process && parent_of(*process) == self && has_child(P_PID, *process)) {
            seen(*process);
        }
    }
}

// Whether there was a child to kill, dead ones that wait to be reaped included.
bool kill_children() noexcept {
    bool any = false;
    for_each_child([&any](pid_t child) {
        const auto& known = spared().known;
        if (std::ranges::find(known, child) == known.end()) {
            kill(child, SIGKILL);
            any = true;
        }
    });
    return any;
}

// Kills the group if a child of this process is in it, dead or alive, and says whether. Without one
// its number may be a stranger's. (A member whose parent lives outside of the group becomes a child
// when that one is killed.)
bool kill_group(pid_t group) noexcept {
    if (group <= 0 || !has_child(P_PGID, group)) {
        return false;
    }
    kill(-group, SIGKILL);
    return true;
}

// Kills what can be found. When a child is left, this says whether it is one of the job's.
bool kill_the_rest(pid_t group) noexcept {
    const bool in_group = kill_group(group);  // who could not be signalled may be able to be now
    const bool shown = kill_children();
    // /proc may be missing, or hide what runs under another user's rights. So the kernel's word
    // counts, unless what it speaks of may be a child from before the job.
    return in_group || shown || !spared().any;
}

void wait_for_a_death() noexcept {
    sigset_t deaths;
    sigemptyset(&deaths);
    sigaddset(&deaths, SIGCHLD);
    sigtimedwait(&deaths, nullptr, &rescan_interval);
}

// Reaps all that have ended; false when no child is left. Seen is called with each.
template <class Seen>
bool reap_each(int flags, Seen seen) noexcept {
    while (true) {
        int status = 0;
        const pid_t process = waitpid(-1, &status, WNOHANG | flags);
        if (process == 0) {
            return true;
        }
        if (process < 0 && errno == EINTR) {
            continue;
        }
        if (process < 0) {
            return false;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            std::erase(spared().known, process);  // the number may be another's from now on
        }
        seen(process, status);
    }
}

// The group first, in one step of the kernel's against which no fork in the group can race. Then
// the rest: the children of whoever dies fall to us, so the end is reached when no child is left.
template <class Seen>
void kill_and_reap(pid_t group, Seen seen) noexcept {
    kill_group(group);
    while (reap_each(0, seen) && kill_the_rest(group)) {
        wait_for_a_death();
    }
}

}  // namespace

void become_subreaper() noexcept {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void spare_present_children() {
    spared().any = has_child(P_ALL, 0);
    if (spared().any) {  // or every process of the machine is looked at for nothing
        for_each_child([](pid_t child) { spared().known.push_back(child); });
    }
}

void forget_spared_children() noexcept {
    spared() = {};
}

void kill_descendants(pid_t group) noexcept {
    kill_and_reap(group, [](pid_t, int) {});
}

void job::signal_command(int number) const noexcept {
    if (!status_) {
        kill(command_, number);
    }
}

void job::signal_group(int number) const noexcept {
    if (has_group()) {
        kill(-command_, number);
    }
}

bool job::has_group() const noexcept {
    return !status_ || has_child(P_PGID, command_);
}

job::news job::reap() noexcept {
    news out;
    empty_ = !reap_each(WUNTRACED | WCONTINUED, [this, &out](pid_t process, int status) {
        if (process != command_) {
            return;
        }
        if (WIFSTOPPED(status)) {
            out = {.stopped_by = WSTOPSIG(status), .continued = false};
        } else if (WIFCONTINUED(status)) {
            out = {.stopped_by = std::nullopt, .continued = true};
        } else {
            status_ = status;
            out = {};
        }
    });
    return out;
}

void job::kill_all() noexcept {
    kill_and_reap(command_, [this](pid_t process, int status) {
        if (process == command_) {
            status_ = status;
        }
    });
    empty_ = true;
}

}  // namespace monolock::cli
