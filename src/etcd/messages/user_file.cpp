#include "etcd/messages/user_file.hpp"

#include <algorithm>

#include "protocol/utf8.hpp"

namespace monolock::etcd {

config::parsed<credentials> parse_user_file(std::string_view text) {
    if (text.ends_with('\n')) {
        text.remove_suffix(1);
    }
    if (text.ends_with('\r')) {
        text.remove_suffix(1);
    }
    if (!protocol::is_valid_utf8(text) || std::ranges::any_of(text, [](char letter) {
            return (letter >= '\0' && letter < ' ') || letter == '\x7f';
        })) {
        return config::diagnostic{"not one line of text, like user:password"};
    }
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
        return config::diagnostic{"a user, a colon and a password are needed: user:password"};
    }
    return credentials{.user = std::string{text.substr(0, colon)},
                       .password = std::string{text.substr(colon + 1)}};
}

}  // namespace monolock::etcd
