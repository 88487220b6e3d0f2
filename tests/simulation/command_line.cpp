#include "simulation/command_line.hpp"

#include <algorithm>
#include <cstdlib>

namespace monolock::simulation {

std::uint64_t scaled(std::uint64_t seeds) {
    const char* const scale = std::getenv("MONOLOCK_TEST_SCALE");  // NOLINT(concurrency-mt-unsafe)
    const double factor = scale == nullptr ? 1.0 : std::strtod(scale, nullptr);
    return std::max<std::uint64_t>(1,
                                   static_cast<std::uint64_t>(static_cast<double>(seeds) * factor));
}

void print_count(int width, std::string_view name, std::uint64_t value) {
    std::cout << "  " << std::left << std::setw(width) << name << std::right << std::setw(12)
              << value << '\n';
}

void print_end(std::uint64_t digest, std::chrono::duration<double> simulated,
               std::chrono::duration<double> took, unsigned threads) {
    std::cout << "digest of all journals " << std::hex << std::setfill('0') << std::setw(16)
              << digest << std::dec << std::setfill(' ') << '\n'
              << std::fixed << std::setprecision(1) << "simulated time " << simulated.count()
              << " s in " << took.count() << " s on " << threads
              << (threads == 1 ? " thread" : " threads") << ": " << std::setprecision(0)
              << simulated.count() / took.count() << " times as fast as real time\n";
}

}  // namespace monolock::simulation
