#pragma once

#include <stop_token>

#include "client/failure.hpp"
#include "client/target.hpp"
#include "posix/descriptor.hpp"

namespace monolock::detail {

struct dial_result {
    posix::descriptor connected;  // or nothing, and then
    failure why;
};

// Calls the target's dialer with one of its addresses and makes what it returns fit for the
// reactor. Blocks for as long as the dialer likes.
[[nodiscard]] dial_result dial(const target& to, const place& where, std::stop_token stop) noexcept;

}  // namespace monolock::detail
