#include "load/server_process.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "load/sockets.hpp"

namespace monolock::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

std::string proc_path(pid_t pid, const char* file) {
    return "/proc/" + std::to_string(pid) + "/" + file;
}

// user and system time, the fields 14 and 15; the second field, a name, may itself hold blanks.
nanoseconds ticks_of(pid_t pid) {
    std::ifstream file(proc_path(pid, "stat"));
    file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string skipped;
    for (int field = 3; field < 14; ++field) {
        file >> skipped;
    }
    std::int64_t user = 0;
    std::int64_t system = 0;
    if (!(file >> user >> system)) {
        throw measurement_error("cannot read the CPU time of the server process");
    }
    return nanoseconds{(user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK))};
}

}  // namespace

nanoseconds server_process::cpu_time() const {
    if (pid_ == 0) {
        return nanoseconds{0};
    }
    const auto tasks = proc_path(pid_, "task");
    if (!std::filesystem::exists(tasks)) {
        throw measurement_error("the server process is gone");
    }
    nanoseconds total{0};
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        std::ifstream file(task.path() / "schedstat");
        std::int64_t on_cpu = 0;
        if (!(file >> on_cpu)) {
            return ticks_of(pid_);
        }
        total += nanoseconds{on_cpu};
    }
    return total;
}

nanoseconds server_process::settled_cpu_time() const {
    auto previous = cpu_time();
    for (int attempt = 0; attempt < 100; ++attempt) {
        std::this_thread::sleep_for(20ms);
        const auto now = cpu_time();
        if (now - previous < 100us) {
            return now;
        }
        previous = now;
    }
    throw measurement_error("the server does not come to rest");
}

std::size_t server_process::resident_bytes() const {
    std::ifstream file(proc_path(pid_, "smaps_rollup"));
    std::string key;
    while (file >> key) {
        if (key == "Rss:") {
            std::size_t kibibytes = 0;
            file >> kibibytes;
            return kibibytes * 1024;
        }
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    throw measurement_error("cannot read the resident memory of the server process");
}

}  // namespace monolock::bench
