#pragma once

#include <string>
#include <string_view>

namespace monolock::telemetry {

// Text from outside (names, identities, reasons, command lines) as one token on one line. Control
// characters, U+0080–U+009F, the line and paragraph separators and the marks that turn the
// direction of writing never come out as themselves: no line can be forged, cut or disguised.

// A JSON string with its quotes. Parsing it gives valid UTF-8 back unchanged; each byte that is not
// part of valid UTF-8 becomes U+FFFD, since JSON cannot carry it. All other characters come out as
// they are.
void append_json_string(std::string& out, std::string_view text);

// A logfmt value. Bare if it is made of printable ASCII without quote, backslash and equals sign;
// else quoted, with \" \\ \n \r \t, \u{hex} for other characters and \xHH for a byte that is not
// part of valid UTF-8. That is for people: characters that are not seen are written so too, and
// marks that would be drawn on the quote or on an escape. Different texts give different values.
void append_logfmt_value(std::string& out, std::string_view text);

// As append_logfmt_value, and quoted always: how diagnostics repeat what somebody typed.
[[nodiscard]] std::string quoted(std::string_view text);

// The same JSON for a script of a page: an HTML parser looks for <, > and & there too, and finds
// none.
[[nodiscard]] std::string without_markup(std::string_view json);

}  // namespace monolock::telemetry
