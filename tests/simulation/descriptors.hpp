#pragma once

#include <algorithm>
#include <utility>

namespace monolock::simulation {

// How many connections a server process may hold; as src/server/descriptor_budget.hpp has it.
class descriptor_slots {
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
                --of_->taken_;
            }
        }
        [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

    private:
        friend class descriptor_slots;
        explicit slot(descriptor_slots& of) noexcept : of_{&of} {}
        descriptor_slots* of_ = nullptr;
    };

    explicit descriptor_slots(int most) noexcept : most_{most} {}

    // An empty slot if nothing is left.
    [[nodiscard]] slot take() noexcept {
        if (free() <= 0) {
            return {};
        }
        ++taken_;
        return slot{*this};
    }

    // From now on there may be so many.
    void raise(int most) noexcept { most_ = std::max(most_, most); }

    // Others have so many of them: connections that say nothing.
    void withhold(int count) noexcept { withheld_ = count; }

    // How many connections the others leave.
    [[nodiscard]] int limit() const noexcept { return most_ - withheld_; }
    [[nodiscard]] int taken() const noexcept { return taken_; }
    [[nodiscard]] int free() const noexcept { return limit() - taken_; }

private:
    int most_;
    int taken_ = 0;
    int withheld_ = 0;
};

}  // namespace monolock::simulation
