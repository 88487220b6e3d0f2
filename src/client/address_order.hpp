#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "client/claim.hpp"

namespace monolock::detail {

// In which order a client tries its addresses; all its claims share it. Pure: whoever owns it sees
// to threads.
//
// Invariant: in_order() is a permutation of 0 to count - 1.
class address_order {
public:
    explicit address_order(std::size_t count);

    // First the one that worked last, last the one that failed last.
    [[nodiscard]] const std::vector<std::size_t>& in_order() const noexcept { return order_; }

    // A server answered there: it goes to the front.
    void worked(std::size_t address) noexcept;
    // Nothing answered there, or what did is going: it goes to the end.
    void failed(std::size_t address) noexcept;

private:
    std::vector<std::size_t> order_;
};

// The way of one attempt through the addresses: which comes next, and how much time it has.
//
// A client with one address gives it all the time. With several, each gets an equal part of what is
// left, and an address that does not even say that nobody listens there is left after a tenth of
// the whole (but 250 ms at least, if its part is that long): a machine that is gone must not
// keep a client from the server that took over. Where it matters more to get through than to
// get on, those that were silent are tried once more with what is left after all: a lost SYN
// comes again after a second.
class address_round {
public:
    enum class manner {
        quick,     // another attempt follows soon
        thorough,  // this is the only one
    };

    // `order` is not empty. The round begins at `now`.
    address_round(std::vector<std::size_t> order, std::chrono::nanoseconds whole, manner how,
                  claim_time now);

    struct step {
        std::size_t address = 0;
        std::chrono::nanoseconds share{};    // for resolving or dialing
        std::chrono::nanoseconds silence{};  // for each endpoint to connect to; not above share

        friend bool operator==(const step&, const step&) = default;
    };
    // The next address to try; nothing when the round is over. The one before came to nothing.
    [[nodiscard]] std::optional<step> next(claim_time now);

    // Of the address that is being tried: no word came from there while connecting.
    void was_silent();

    [[nodiscard]] bool is_list() const noexcept { return is_list_; }

private:
    [[nodiscard]] bool begin_second_pass();

    std::vector<std::size_t> order_;  // of this pass
    std::size_t tried_ = 0;           // of them
    std::vector<std::size_t> silent_;
    const std::chrono::nanoseconds whole_;
    std::chrono::nanoseconds left_;
    std::chrono::nanoseconds share_{0};  // of the address that is being tried
    claim_time began_;                   // with it
    const bool is_list_;
    bool may_try_again_;
    bool is_second_pass_ = false;
};

}  // namespace monolock::detail
