#include "in_memory/stage.hpp"

#include <pthread.h>

#include <array>
#include <future>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "floor/constant_answer.hpp"
#include "floor/loop.hpp"
#include "posix/descriptor.hpp"
#include "server/heap.hpp"

namespace monolock::bench::in_memory {

namespace {

// What a floor server does: an answer for each arrival, and no state at all.
class byte_answerer {
public:
    void opened(int) noexcept {}

    void serve(int connection) {
        const auto received = ::recv(connection, input_.data(), input_.size(), 0);
        if (received <= 0) {
            ::close(connection);
            return;
        }
        const auto bytes = answer_.to(std::span{input_}.first(static_cast<std::size_t>(received)));
        static_cast<void>(::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    }

private:
    std::array<std::byte, floor::input_bytes_max> input_{};
    floor::constant_answer answer_;
};

}  // namespace

thread_cpu::thread_cpu() {
    if (const int failed = ::pthread_getcpuclockid(::pthread_self(), &clock_); failed != 0) {
        throw std::system_error{failed, std::generic_category(), "pthread_getcpuclockid"};
    }
}

std::chrono::nanoseconds thread_cpu::used() const {
    timespec time{};
    if (::clock_gettime(clock_, &time) != 0) {
        throw std::system_error{errno, std::generic_category(), "clock_gettime"};
    }
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

stage::prepared_heap::prepared_heap() {
    server::prepare_heap();
}

// Ownership is remembered, as with an admin API.
stage::stage(network& over, std::size_t shards)
    : log_{telemetry::log_level::info, telemetry::log_format::text},
      around_{.hasher = core::name_hasher{{}},
              .io_timeout = std::chrono::seconds{5},
              .log = &log_,
              .remembers_ownership = true} {
    around_.accepting.budget.open(std::numeric_limits<std::int32_t>::max());
    for (std::size_t number = 0; number < shards; ++number) {
        around_.shards.push_back(std::make_unique<server::shard>(around_, number));
    }
    for (const auto& each : around_.shards) {
        std::vector<posix::descriptor> listening;
        listening.push_back(over.listen());
        each->open(std::move(listening));
    }
    for (const auto& each : around_.shards) {
        each->start();
        std::promise<thread_cpu> cpu;
        each->ask([&cpu] { cpu.set_value({}); });
        cpu_.push_back(cpu.get_future().get());
    }
}

stage::~stage() {
    for (const auto& each : around_.shards) {
        each->stop_and_join();
    }
}

std::chrono::nanoseconds stage::cpu_time() const {
    std::chrono::nanoseconds sum{0};
    for (const thread_cpu& each : cpu_) {
        sum += each.used();
    }
    return sum;
}

std::uint64_t stage::sessions() const {
    std::uint64_t sum = 0;
    for (const auto& each : around_.shards) {
        sum += each->counters().sessions();
    }
    return sum;
}

std::uint64_t stage::ended(core::end_reason why) const {
    std::uint64_t sum = 0;
    for (const auto& each : around_.shards) {
        sum += each->counters().releases(why);
    }
    return sum;
}

floor_stage::floor_stage(network& over) {
    std::promise<thread_cpu> cpu;
    std::thread{[&cpu, listener = over.listen().release()] {
        cpu.set_value({});
        byte_answerer answerer;
        floor::run(answerer, listener);
    }}.detach();
    cpu_.push_back(cpu.get_future().get());
}

}  // namespace monolock::bench::in_memory
