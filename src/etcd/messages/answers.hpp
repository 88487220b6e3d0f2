#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "coordination/store.hpp"
#include "etcd/messages/calls.hpp"

namespace monolock::etcd {

// No answer to a call, and no line of a watch, is longer. Ours have less than a kilobyte; a watch
// that begins behind a look catches up on few renewals.
inline constexpr std::size_t answer_bytes_max = std::size_t{256} * 1024;

// What the gateway answered to an HTTP request.
inline constexpr long status_ok = 200;
struct reply {
    long status = 0;
    std::string_view body;
};

// What an answer says of the endpoint that gave it.
enum class verdict : std::uint8_t {
    keep,         // it does its work, even if the answer is an error
    move_on,      // another may do better
    stale_token,  // it wants a token, or a newer one; nothing was done
};

struct failure {
    std::string why;  // one line of printable characters, at most why_bytes_max bytes
    verdict of_endpoint = verdict::move_on;
};
inline constexpr std::size_t why_bytes_max = 300;

struct reading {
    coordination::answer what;
    verdict of_endpoint = verdict::keep;
};

// The answer to a request. What is not exactly as it should be is `failed`: wrong types, numbers
// that do not fit, members that are there twice, other keys, counts and revisions that contradict
// each other, records that are none of ours (but what a renewal or a resignation reads of `active`:
// its revisions say whose it is). Fields that protobuf leaves out of JSON are zeros, and
// a zero is accepted only where it means something: a revision, a lease's id or a granted TTL of
// zero is `failed`, a kept TTL of zero is a lease that is gone.
[[nodiscard]] reading read_answer(const coordination::request& asked, const key_names& keys,
                                  const reply& from);

// Any answer that is not one of status 200, or one in its place.
[[nodiscard]] failure read_failure(const reply& from);

// The answer to an authentication. A token is printable ASCII without blanks, and goes into a
// header as it is. Empty: etcd runs without authentication, and asks nobody for a token.
struct token_reading {
    std::optional<std::string> token;
    failure why;  // if there is none
};
[[nodiscard]] token_reading read_token(const reply& from);

}  // namespace monolock::etcd
