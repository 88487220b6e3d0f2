#pragma once

#include <string>
#include <system_error>

#include "client/claim.hpp"
#include "monolock/error.hpp"

namespace monolock::detail {

// An outcome that is not a lock, as a value; the public calls turn it into an exception or a code.
struct failure {
    std::error_code code;
    stage at = stage::preparing;
    std::string detail;     // for what(); of a server's ERROR its reason
    bool admitted = false;  // the server had answered the claim
};

// Throws server_error or error.
[[noreturn]] void raise(const failure& why);

// What a lost claim comes to. `at` is the stage that the caller knows of.
[[nodiscard]] failure to_failure(const claim_loss& loss, stage at, bool admitted);

}  // namespace monolock::detail
