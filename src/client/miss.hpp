#pragma once

#include <string>
#include <vector>

#include "client/failure.hpp"

namespace monolock::detail {

// Why one of several addresses gave no claim.
struct miss {
    std::string address;
    failure why;
};

// Whether an attempt may go on to another address after this one failed. Only before any answer,
// and only if no server can still count the claim: nothing was sent, or the other end closed the
// connection (which ends the claim), or said that it serves nobody now. Not after
//   - silence after the ACQUIRE (acquire_timeout): it is in doubt, and its time is spent,
//   - an ERROR from 0x10 up, or a client certificate that was refused: a server that is in charge
//     has spoken,
//   - anything that only another kind of server says (protocol_violation): a wrong address, which
//     must be seen,
//   - a failure of this process.
[[nodiscard]] bool may_move_on(const failure& why) noexcept;

// Whether another attempt would come to the same end for a reason that lies in the configuration.
[[nodiscard]] bool is_permanent(const failure& why) noexcept;

// One failure for an attempt whose addresses all failed; `all` is not empty and in the order in
// which they were tried. Its code is that of the first, but what a retry does not cure comes before
// (a standby that refuses connections must not hide an active server that is not trusted), and
// an ERROR after all else. Its detail names all addresses. One alone is left as it is.
[[nodiscard]] failure sum_up(std::vector<miss> all);

// "address: detail"; an ERROR's reason is the server's word and stays as it is.
void name_address(failure& why, const std::string& address);

}  // namespace monolock::detail
