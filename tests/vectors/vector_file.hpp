#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// The vectors of tests/vectors, for tests in C++. README.md beside this file has the format.

namespace monolock::vectors {

using json = nlohmann::json;

// The list `name` of a vector file; a missing file, a missing list or an empty one is an error, so
// that a test over it cannot pass by doing nothing.
inline json load(const std::string& file, const std::string& name) {
    std::ifstream stream{std::string{MONOLOCK_VECTORS} + "/" + file};
    json list = json::parse(stream).at(name);
    if (!list.is_array() || list.empty()) {
        throw std::runtime_error{file + ": no vectors under " + name};
    }
    return list;
}

// The bytes that the key holds, as text; a key that ends in _hex.
inline std::string bytes_at(const json& hex) {
    const auto digits = hex.get<std::string>();
    std::string bytes;
    for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
        bytes.push_back(static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16)));
    }
    return bytes;
}

// An error code, spelled 0x16.
inline std::uint8_t code_at(const json& code) {
    return static_cast<std::uint8_t>(std::stoi(code.get<std::string>(), nullptr, 16));
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span{text});
}

// The ways a stream may cut these bytes: whole, in two at each place, a byte at a time.
inline std::vector<std::vector<std::string_view>> all_cuts(std::string_view bytes) {
    std::vector<std::vector<std::string_view>> cuts{{bytes}};
    for (std::size_t at = 1; at < bytes.size(); ++at) {
        cuts.push_back({bytes.substr(0, at), bytes.substr(at)});
    }
    std::vector<std::string_view> single;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        single.push_back(bytes.substr(at, 1));
    }
    cuts.push_back(single);
    return cuts;
}

}  // namespace monolock::vectors
