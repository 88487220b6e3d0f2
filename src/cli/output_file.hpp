#pragma once

#include <string>
#include <string_view>

namespace monolock::cli {

// Writes a whole file, so that at its path there is either what was there before or all of the
// text, whatever happens meanwhile. A link stays, and the file is where it leads to. Something that
// is no regular file (a pipe, a device), and a descriptor that is named by its link (/dev/stdout),
// is written to as it is. What goes wrong is a std::system_error that names the file.
void write_whole_file(const std::string& path, std::string_view text);

// Whether both lead to the same regular file: paths, or "-" for standard input and for standard
// output.
[[nodiscard]] bool is_same_file(const std::string& read, const std::string& written);

}  // namespace monolock::cli
