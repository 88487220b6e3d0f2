#pragma once

#include <string>
#include <string_view>

namespace monolock::cli {

// Writes a whole file, so that at its path there is either what was there before or all of the
// text, whatever happens meanwhile. A link stays, and the file is where it leads to. Something that
// is no regular file (a pipe, a device), and a descriptor that is named by its link (/dev/stdout),
// is written to as it is. What goes wrong is a std::system_error that names the file.
void write_whole_file(const std::string& path, std::string_view text);

// Whether both paths lead to the same file.
[[nodiscard]] bool is_same_file(const std::string& left, const std::string& right);

}  // namespace monolock::cli
