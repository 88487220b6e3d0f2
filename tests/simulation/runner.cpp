#include "simulation/runner.hpp"

#include <atomic>
#include <iostream>

#include "simulation/command_line.hpp"
#include "simulation/world.hpp"

namespace monolock::simulation {

namespace {

using clock = std::chrono::steady_clock;

class seed_source {
public:
    explicit seed_source(const run_plan& plan) : plan_{&plan} {}

    // False if there is none left, or no time.
    [[nodiscard]] bool take(std::uint64_t& seed) {
        if (plan_->time_max.count() > 0 && clock::now() - began_ > plan_->time_max) {
            return false;
        }
        const std::uint64_t at = next_++;
        seed = plan_->seed + at;
        return at < plan_->seeds;
    }

    // On one thread.
    void say_how_far() {
        const auto now = clock::now();
        if (plan_->progress.count() > 0 && now - said_ > plan_->progress) {
            said_ = now;
            const auto took = std::chrono::duration_cast<std::chrono::seconds>(now - began_);
            std::cerr << "after " << took.count() << " s: " << next_ << " seeds\n";
        }
    }

private:
    const run_plan* plan_;
    clock::time_point began_ = clock::now();
    clock::time_point said_ = began_;
    std::atomic<std::uint64_t> next_{0};
};

}  // namespace

tally run_all(const run_plan& plan) {
    seed_source source{plan};
    return on_threads<tally>(plan.trace ? 1 : plan.jobs, [&](tally& mine, bool speaks) {
        for (std::uint64_t seed = 0; source.take(seed);) {
            run({.seed = seed, .kind = plan.kind, .trace = plan.trace}, mine);
            if (speaks) {
                source.say_how_far();
            }
        }
    });
}

}  // namespace monolock::simulation
