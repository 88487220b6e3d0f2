#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace monolock::server {

// Raises the soft limit of open descriptors to the hard one. Returns the limit now in force.
std::uint64_t raise_descriptor_limit() noexcept;

// How many connections the process may hold, so that some descriptors always stay free for metrics,
// administration and reload. Shared by all shards.
class descriptor_budget {
public:
    // Permission for one connection, given back when destroyed.
    class slot {
    public:
        slot() noexcept = default;
        slot(slot&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
        slot& operator=(slot&& other) noexcept {
            std::swap(of_, other.of_);
            return *this;
        }
        slot(const slot&) = delete;
        slot& operator=(const slot&) = delete;
        ~slot() {
            if (of_ != nullptr) {
                of_->taken_.fetch_sub(1, std::memory_order_relaxed);
            }
        }
        [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

    private:
        friend class descriptor_budget;
        explicit slot(descriptor_budget& of) noexcept : of_{&of} {}
        descriptor_budget* of_ = nullptr;
    };

    // To be called once, when everything that the process itself needs is open and before the first
    // take(). `limit` is the limit of descriptors in force; `later` is how many the process itself
    // will open besides.
    void open(std::uint64_t limit, std::uint64_t later = 0) noexcept;

    // An empty slot if nothing is left. Any thread.
    [[nodiscard]] slot take() noexcept;

    // Whether take() would have found a slot. Any thread.
    [[nodiscard]] bool has_room() const noexcept {
        return taken_.load(std::memory_order_relaxed) < connections_max_;
    }

    [[nodiscard]] std::int64_t connections_max() const noexcept { return connections_max_; }
    // How many descriptors stay free for the process itself when all slots are taken.
    [[nodiscard]] std::uint64_t reserve() const noexcept { return reserve_; }

private:
    std::uint64_t reserve_ = 0;
    std::int64_t connections_max_ = 0;
    std::atomic<std::int64_t> taken_{0};
};

}  // namespace monolock::server
