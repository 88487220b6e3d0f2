#include "server/process_metrics.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "server/metric_families.hpp"

namespace monolock::server {

namespace {

std::string read_whole(const char* path) {
    std::ifstream file{path};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// What proc(5) says of /proc/self/stat, counted from the field after the program's name, which is
// the second and may hold spaces and parentheses.
struct process_status {
    std::uint64_t user_ticks = 0;
    std::uint64_t system_ticks = 0;
    std::uint64_t threads = 0;
    std::uint64_t start_ticks = 0;
    std::uint64_t virtual_bytes = 0;
    std::uint64_t resident_pages = 0;
};

std::optional<process_status> read_status() {
    const std::string text = read_whole("/proc/self/stat");
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    std::istringstream rest{text.substr(name_end + 1)};
    std::array<std::string, 22> fields;  // fields 3 to 24
    for (std::string& each : fields) {
        rest >> each;
    }
    if (!rest) {
        return std::nullopt;
    }
    const auto field = [&](std::size_t number) { return std::stoull(fields[number - 3]); };
    return process_status{.user_ticks = field(14),
                          .system_ticks = field(15),
                          .threads = field(20),
                          .start_ticks = field(22),
                          .virtual_bytes = field(23),
                          .resident_pages = field(24)};
}

double ticks_to_seconds(std::uint64_t ticks) {
    return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Seconds since 1970 at which the machine started; zero: unknown.
double boot_time() {
    std::istringstream lines{read_whole("/proc/stat")};
    for (std::string word; lines >> word;) {
        double seconds = 0;
        if (word == "btime" && lines >> seconds) {
            return seconds;
        }
    }
    return 0;
}

// Without the one that counting takes.
std::optional<double> open_descriptors() {
    std::error_code failed;
    std::filesystem::directory_iterator each{"/proc/self/fd", failed};
    double count = -1;
    while (!failed && each != std::filesystem::directory_iterator{}) {
        ++count;
        each.increment(failed);
    }
    return failed ? std::nullopt : std::optional{count};
}

// Infinity if there is none.
std::optional<double> limit_of(int resource) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
        return std::nullopt;
    }
    return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                           : static_cast<double>(limit.rlim_cur);
}

}  // namespace

process_metrics::process_metrics() {
    const auto status = read_status();
    if (const double boot = boot_time(); status && boot > 0) {
        start_time_seconds_ = boot + ticks_to_seconds(status->start_ticks);
    }
}

std::vector<prometheus::MetricFamily> process_metrics::collect() const {
    std::vector<prometheus::MetricFamily> all;
    if (const auto status = read_status()) {
        all.push_back(counter_family("process_cpu_seconds_total",
                                     "Total user and system CPU time spent in seconds.",
                                     ticks_to_seconds(status->user_ticks + status->system_ticks)));
        all.push_back(gauge_family("process_virtual_memory_bytes", "Virtual memory size in bytes.",
                                   number(status->virtual_bytes)));
        all.push_back(gauge_family(
            "process_resident_memory_bytes", "Resident memory size in bytes.",
            number(status->resident_pages) * static_cast<double>(::sysconf(_SC_PAGE_SIZE))));
        all.push_back(gauge_family("process_threads", "Number of OS threads in the process.",
                                   number(status->threads)));
    }
    if (const auto most = limit_of(RLIMIT_AS)) {
        all.push_back(gauge_family("process_virtual_memory_max_bytes",
                                   "Maximum amount of virtual memory available in bytes.", *most));
    }
    if (const auto count = open_descriptors()) {
        all.push_back(gauge_family("process_open_fds", "Number of open file descriptors.", *count));
    }
    if (const auto most = limit_of(RLIMIT_NOFILE)) {
        all.push_back(
            gauge_family("process_max_fds", "Maximum number of open file descriptors.", *most));
    }
    if (start_time_seconds_ > 0) {
        all.push_back(gauge_family("process_start_time_seconds",
                                   "Start time of the process since unix epoch in seconds.",
                                   start_time_seconds_));
    }
    return all;
}

}  // namespace monolock::server
