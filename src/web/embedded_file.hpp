#pragma once

#include <string_view>

namespace monolock::web {

// A file that is part of the program (cmake/monolock_embed.cmake). Both views last as long as it.
struct embedded_file {
    std::string_view name;   // as it was listed, with '/' between folders
    std::string_view bytes;  // followed by a NUL that is not counted
};

}  // namespace monolock::web
