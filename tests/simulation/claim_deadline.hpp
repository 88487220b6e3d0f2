#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "client/claim.hpp"
#include "simulation/time.hpp"

namespace monolock::simulation {

// Until when a client may believe: 0.8 x lease from the send time of the last message that was
// answered. Reckoned from what it hands to its socket and what it reads, apart from the claim,
// which must come to the same.
class claim_deadline {
public:
    explicit claim_deadline(milliseconds lease) noexcept : lease_{lease} {}

    // So many bytes are about to be handed over, by a reading taken before.
    void offers(std::size_t bytes, detail::claim_time now) noexcept {
        if (unsent_ == 0 && bytes > 0) {
            unsent_ = bytes;
            sent_at_ = now;
        }
    }
    void hands_over(std::size_t bytes) noexcept { unsent_ -= bytes; }

    // So many answers have been read by now, the push not counted.
    void reads(std::uint64_t answers) noexcept {
        if (answers > answers_) {
            answers_ = answers;
            confirmed_at_ = sent_at_;
        }
    }

    // Nothing before the ACQUIRE.
    [[nodiscard]] bool passed(detail::claim_time now) const noexcept {
        const auto& from = confirmed_at_ ? confirmed_at_ : sent_at_;
        return from && now >= *from + nanoseconds{lease_} * 4 / 5;
    }

private:
    milliseconds lease_;
    std::size_t unsent_ = 0;  // of the message under way
    std::optional<detail::claim_time> sent_at_;
    std::optional<detail::claim_time> confirmed_at_;
    std::uint64_t answers_ = 0;
};

}  // namespace monolock::simulation
