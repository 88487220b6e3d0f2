#include "load/modes.hpp"

namespace monolock::bench {

std::vector<memory_sample> run_memory(const target& to, const memory_options& options) {
    std::vector<memory_sample> samples;
    std::vector<connection> sessions;
    const auto sample = [&] {
        static_cast<void>(to.process.settled_cpu_time());
        samples.push_back(
            {.sessions = sessions.size(), .resident_bytes = to.process.resident_bytes()});
    };
    sample();
    for (const auto size : options.sizes) {
        sessions.reserve(size);
        while (sessions.size() < size) {
            const auto serial = sessions.size();
            sessions.push_back(options.waiters && serial > 0 ? queue_up(to, serial, lock_name(0))
                                                             : own(to, serial, lock_name(serial)));
        }
        sample();
    }
    return samples;
}

}  // namespace monolock::bench
