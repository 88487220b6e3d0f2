#include "peers/account.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include "load/sockets.hpp"

namespace monolock::bench::peers {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Of /proc/PID/stat.
struct process_stat {
    pid_t parent = 0;
    std::int64_t own_ticks = 0;
    std::int64_t waited_for_ticks = 0;  // of its children that have ended
};

// Nothing if the process is gone. Fields are counted from 1, as proc(5) does; the second, a name,
// may itself hold blanks.
std::optional<process_stat> stat_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string skipped;
    process_stat stat;
    file >> skipped >> stat.parent;
    for (int field = 5; field < 14; ++field) {
        file >> skipped;
    }
    std::int64_t user = 0;
    std::int64_t system = 0;
    std::int64_t children_user = 0;
    std::int64_t children_system = 0;
    if (!(file >> user >> system >> children_user >> children_system)) {
        return std::nullopt;
    }
    stat.own_ticks = user + system;
    stat.waited_for_ticks = children_user + children_system;
    return stat;
}

std::vector<pid_t> with_descendants(pid_t root) {
    std::vector<std::pair<pid_t, pid_t>> child_and_parent;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto name = entry.path().filename().string();
        pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{}) {
            if (const auto stat = stat_of(pid)) {
                child_and_parent.emplace_back(pid, stat->parent);
            }
        }
    }
    std::vector<pid_t> found{root};
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (const auto& [child, parent] : child_and_parent) {
            if (parent == found[i]) {
                found.push_back(child);
            }
        }
    }
    return found;
}

nanoseconds cgroup_time(const std::string& cgroup) {
    std::ifstream file(cgroup + "/cpu.stat");
    std::string key;
    std::int64_t value = 0;
    while (file >> key >> value) {
        if (key == "usage_usec") {
            return std::chrono::microseconds{value};
        }
    }
    throw measurement_error("cannot read the CPU time of the control group " + cgroup);
}

std::size_t proportional_bytes(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
    std::string key;
    while (file >> key) {
        if (key == "Pss:") {
            std::size_t kibibytes = 0;
            file >> kibibytes;
            return kibibytes * 1024;
        }
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return 0;  // it has ended since it was listed
}

}  // namespace

std::vector<pid_t> account::processes() const {
    if (cgroup_.empty()) {
        return with_descendants(root_);
    }
    std::vector<pid_t> found;
    std::ifstream file(cgroup_ + "/cgroup.procs");
    for (pid_t pid = 0; file >> pid;) {
        found.push_back(pid);
    }
    return found;
}

nanoseconds account::cpu_time() const {
    if (!cgroup_.empty()) {
        return cgroup_time(cgroup_);
    }
    std::int64_t ticks = 0;
    for (const auto pid : with_descendants(root_)) {
        if (const auto stat = stat_of(pid)) {
            ticks += stat->own_ticks + stat->waited_for_ticks;
        }
    }
    return nanoseconds{ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))};
}

nanoseconds account::settled_cpu_time() const {
    constexpr auto pause = 20ms;
    auto previous = cpu_time();
    for (auto waited = 0ms; waited < 5s; waited += pause) {
        std::this_thread::sleep_for(pause);
        const auto now = cpu_time();
        if (now - previous < pause / 20) {
            return now;
        }
        previous = now;
    }
    throw measurement_error("the peer does not come to rest");
}

std::size_t account::resident_bytes() const {
    std::size_t total = 0;
    for (const auto pid : processes()) {
        total += proportional_bytes(pid);
    }
    if (total == 0) {
        throw measurement_error("cannot read the resident memory of the peer");
    }
    return total;
}

std::size_t account::settled_resident_bytes(nanoseconds patience) const {
    std::this_thread::sleep_for(patience);
    auto previous = resident_bytes();
    for (int second = 0; second < 10; ++second) {
        std::this_thread::sleep_for(1s);
        const auto now = resident_bytes();
        if (now >= previous) {
            return now;
        }
        previous = now;
    }
    return previous;
}

}  // namespace monolock::bench::peers
