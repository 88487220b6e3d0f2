#pragma once

#include <atomic>
#include <cstdint>

#include "core/token_source.hpp"

namespace monolock::server {

// The tokens of this process: one atomic number for all shards, moved along by the wall clock.
class token_counter final : public core::token_source {
public:
    [[nodiscard]] core::fencing_token next() noexcept override;

private:
    std::atomic<std::uint64_t> last_{0};
};

}  // namespace monolock::server
