// What shards pay for the few numbers that they share, with one, two and four threads at them at
// once, as fast as they can: the source of tokens, asked with each grant, and the number of the
// last session, with each claim. Beside them the clock that a token needs, and a counter that a
// shard keeps to itself, as with each heartbeat.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/cache_line.hpp"
#include "server/token_counter.hpp"
#include "telemetry/counter.hpp"

namespace monolock {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds lease{10s};

void token(benchmark::State& state) {
    static server::token_counter tokens;
    for (auto _ : state) {
        benchmark::DoNotOptimize(tokens.next(lease));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(token)->ThreadRange(1, 4)->UseRealTime();

// What a token costs where nobody else asks.
void token_of_ones_own(benchmark::State& state) {
    server::token_counter tokens;
    for (auto _ : state) {
        benchmark::DoNotOptimize(tokens.next(lease));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(token_of_ones_own)->ThreadRange(1, 4)->UseRealTime();

void session_number(benchmark::State& state) {
    alignas(server::cache_line_bytes) static std::atomic<std::uint64_t> last{0};
    for (auto _ : state) {
        benchmark::DoNotOptimize(last.fetch_add(1, std::memory_order_relaxed));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(session_number)->ThreadRange(1, 4)->UseRealTime();

void heartbeat_counter(benchmark::State& state) {
    alignas(server::cache_line_bytes) telemetry::counter mine;
    for (auto _ : state) {
        mine.add();
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(heartbeat_counter)->ThreadRange(1, 4)->UseRealTime();

}  // namespace
}  // namespace monolock
