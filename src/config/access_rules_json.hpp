#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/access_rules.hpp"
#include "config/parsed.hpp"

namespace monolock::config {

// The most that a file of rules may hold: some fifty thousand of them.
inline constexpr std::size_t access_rules_bytes_max = std::size_t{8} << 20U;

// Reads the JSON text
//     {"rules": [{"identity": GLOB, "locks": [GLOB, …]}, …]}
// strictly: a key that is unknown or comes twice, a wrong type, a missing or an empty part is
// wrong, whatever else the text says. Each diagnostic names its place: `FILE:LINE:COLUMN: why`
// where the text is not JSON (columns count characters, from 1), `FILE: POINTER: why` (JSON
// pointer, RFC 6901) where it is not a list of rules. Of very many only the first are told, and how
// many more there are. What comes from the file is escaped; a diagnostic is one line.
//
// `content` is the file's text, or why it could not be read; `file` is what diagnostics call it.
[[nodiscard]] checked<access_rules> parse_access_rules(std::string_view file,
                                                       const parsed<std::string>& content);

}  // namespace monolock::config
