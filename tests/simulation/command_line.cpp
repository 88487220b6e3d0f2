#include "simulation/command_line.hpp"

#include <algorithm>
#include <cstdlib>

namespace monolock::simulation {

namespace {

constexpr unsigned jobs_max = 1024;
constexpr double seeds_max = 1e18;

}  // namespace

bool read_jobs(std::string_view text, unsigned& into) {
    return read_count(text, into) && into <= jobs_max;
}

std::optional<std::uint64_t> scaled(std::uint64_t seeds, std::string_view scale) {
    double factor = 1.0;
    if (!read_number(scale, factor)) {
        return std::nullopt;
    }
    const double product = static_cast<double>(seeds) * factor;
    if (!(product >= 0 && product <= seeds_max)) {
        return std::nullopt;
    }
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(product));
}

std::string scale(std::uint64_t& seeds) {
    const char* const by = std::getenv("MONOLOCK_TEST_SCALE");  // NOLINT(concurrency-mt-unsafe)
    const std::optional<std::uint64_t> fewer = by == nullptr ? seeds : scaled(seeds, by);
    seeds = fewer.value_or(seeds);
    return fewer ? "" : "'" + std::string{by} + "' is no value for MONOLOCK_TEST_SCALE";
}

std::string read_words(const std::vector<std::string_view>& words,
                       const std::vector<option>& known) {
    for (auto word = words.begin(); word != words.end(); ++word) {
        const auto found = std::ranges::find(known, *word, &option::name);
        if (found == known.end()) {
            return "there is no option '" + std::string{*word} + "'";
        }
        if (found->flag != nullptr) {
            *found->flag = true;
            continue;
        }
        if (++word == words.end()) {
            return "no value follows " + std::string{found->name};
        }
        if (!found->take(*word)) {
            return "'" + std::string{*word} + "' is no value for " + std::string{found->name};
        }
    }
    return {};
}

int show_usage(std::string_view program, std::string_view usage,
               const std::vector<std::string_view>& words, std::string_view wrong) {
    const bool asked = std::ranges::any_of(
        words, [](std::string_view word) { return word == "--help" || word == "-h"; });
    if (asked) {
        std::cout << usage;
        return end_of_output();
    }
    std::cerr << program << ": " << wrong << '\n' << usage;
    return 2;
}

int end_of_output() {
    std::cout.flush();
    if (!std::cout) {
        std::cerr << "the output could not be written\n";
        return 1;
    }
    return 0;
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
              << " s\n";
    std::cerr << std::fixed << std::setprecision(1) << "took " << took.count() << " s on "
              << threads << (threads == 1 ? " thread" : " threads") << ": " << std::setprecision(0)
              << simulated.count() / took.count() << " times as fast as real time\n";
}

}  // namespace monolock::simulation
