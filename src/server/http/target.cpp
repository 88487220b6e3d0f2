#include "server/http/target.hpp"

#include <algorithm>

namespace monolock::server::http {

namespace {

std::optional<unsigned> digit(char letter) noexcept {
    if (letter >= '0' && letter <= '9') {
        return static_cast<unsigned>(letter - '0');
    }
    if (letter >= 'a' && letter <= 'f') {
        return static_cast<unsigned>(letter - 'a') + 10U;
    }
    if (letter >= 'A' && letter <= 'F') {
        return static_cast<unsigned>(letter - 'A') + 10U;
    }
    return std::nullopt;
}

std::optional<std::string> decoded(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            if (text[at] <= ' ' || text[at] > '~') {
                return std::nullopt;
            }
            out += text[at];
            continue;
        }
        if (text.size() - at < 3) {
            return std::nullopt;
        }
        const auto high = digit(text[at + 1]);
        const auto low = digit(text[at + 2]);
        if (!high || !low) {
            return std::nullopt;
        }
        out += static_cast<char>(*high << 4U | *low);
        at += 2;
    }
    return out;
}

// Calls with each part between separators; stops and says false when a call does.
template <class Take>
bool for_each_part(std::string_view text, char separator, Take take) {
    for (;;) {
        const std::size_t end = text.find(separator);
        if (!take(text.substr(0, end))) {
            return false;
        }
        if (end == std::string_view::npos) {
            return true;
        }
        text.remove_prefix(end + 1);
    }
}

}  // namespace

std::optional<target> parse_target(std::string_view text) {
    if (text.empty() || text.front() != '/') {
        return std::nullopt;
    }
    const std::size_t mark = text.find('?');
    target made;
    const bool path_is_good =
        for_each_part(text.substr(1, mark == std::string_view::npos ? mark : mark - 1), '/',
                      [&](std::string_view part) {
                          auto segment = decoded(part);
                          if (!segment) {
                              return false;
                          }
                          made.path.push_back(*std::move(segment));
                          return true;
                      });
    if (!path_is_good) {
        return std::nullopt;
    }
    if (mark == std::string_view::npos || mark + 1 == text.size()) {
        return made;
    }
    const bool query_is_good =
        for_each_part(text.substr(mark + 1), '&', [&](std::string_view part) {
            const std::size_t equals = part.find('=');
            auto key = decoded(part.substr(0, equals));
            auto value = equals == std::string_view::npos ? std::optional<std::string>{""}
                                                          : decoded(part.substr(equals + 1));
            if (!key || !value) {
                return false;
            }
            made.query.emplace_back(*std::move(key), *std::move(value));
            return true;
        });
    return query_is_good ? std::optional{std::move(made)} : std::nullopt;
}

std::optional<absolute_target> split_absolute(std::string_view text) {
    constexpr std::string_view scheme = "http://";
    const std::string_view begin = text.substr(0, scheme.size());
    const bool is_absolute = std::equal(
        begin.begin(), begin.end(), scheme.begin(), scheme.end(), [](char letter, char wanted) {
            return letter == wanted ||
                   (letter >= 'A' && letter <= 'Z' && letter - 'A' + 'a' == wanted);
        });
    if (!is_absolute) {
        return std::nullopt;
    }
    text.remove_prefix(scheme.size());
    const std::size_t end = std::min(text.find_first_of("/?"), text.size());
    if (end == 0) {
        return std::nullopt;
    }
    absolute_target made{.authority = std::string{text.substr(0, end)},
                         .origin_form = std::string{text.substr(end)}};
    if (!made.origin_form.starts_with('/')) {
        made.origin_form.insert(0, 1, '/');
    }
    return made;
}

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char letter : text) {
        const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9') ||
                           std::string_view{"-._~"}.find(letter) != std::string_view::npos;
        if (plain) {
            out += letter;
            continue;
        }
        const auto byte = static_cast<unsigned char>(letter);
        out += '%';
        out += digits[byte >> 4U];
        out += digits[byte & 0xFU];
    }
    return out;
}

}  // namespace monolock::server::http
