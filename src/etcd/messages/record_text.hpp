#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/parsed.hpp"
#include "coordination/records.hpp"

namespace monolock::etcd {

// The values of `active` and `state` as they stand in etcd: JSON objects of ours, with every 64-bit
// number as a decimal string, since not every reader of JSON keeps 64 bits.
//
//   {"format":"1","name":"a:7070","ttl_ms":"5000","sequence":"3"}
//   {"format":"1","ceiling":"…","longest_lease_ms":"30000","name":"a:7070","ttl_ms":"5000",
//    "written_in":"17","sequence":"3","resigned":false}
//
// Readers ignore members that they do not know, so that a later version can add some; what is to be
// understood by all gets another format, which they refuse.

// No TTL and no lease in a record is longer: leases end at 2^32 ms, which is 50 days. So sums of a
// few of them and a clock's reading fit.
inline constexpr std::chrono::milliseconds record_duration_max = std::chrono::hours{24 * 365};

// A ceiling above that leaves no room for tokens: who adopted it would be active and grant nothing.
// Honest ones stay near the clock's 2^51.
inline constexpr std::uint64_t record_ceiling_max = std::uint64_t{1} << 63U;

// The name is to be valid UTF-8; what is not becomes U+FFFD.
[[nodiscard]] std::string to_text(const coordination::active_record& record);
[[nodiscard]] std::string to_text(const coordination::state_record& record);

// Refuses what is no JSON object, names a member twice, lacks one or has one of another type or out
// of range: a TTL of zero, or a term, would be taken for permission to open at once.
[[nodiscard]] config::parsed<coordination::active_record> read_active_record(std::string_view text);
[[nodiscard]] config::parsed<coordination::state_record> read_state_record(std::string_view text);

}  // namespace monolock::etcd
