#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

// Fields of JSON as protobuf writes it, for the readers of this folder.
namespace monolock::etcd {

using json = nlohmann::json;

// What is wrong with a message, in words of ours. Thrown and caught within this folder.
struct odd_message {
    std::string why;
};

// The text is one JSON object and nothing else but blanks, no object in it names a member twice,
// and it is not nested deeper than any message of etcd's. Throws odd_message.
[[nodiscard]] json parse_object(std::string_view text);

// The member, or null if there is none (or the member is null, which protobuf takes for the same).
[[nodiscard]] const json* find(const json& object, const char* key);

// Members, with the value of an absent one. Each throws odd_message if it is of another type.
[[nodiscard]] std::int64_t int64_at(const json& object, const char* key);  // a string or a number
[[nodiscard]] bool bool_at(const json& object, const char* key);
[[nodiscard]] std::string text_at(const json& object, const char* key);
[[nodiscard]] std::string bytes_at(const json& object, const char* key);  // base64
[[nodiscard]] const json& object_at(const json& object, const char* key);
[[nodiscard]] const json& list_at(const json& object, const char* key);

[[nodiscard]] std::string to_base64(std::string_view bytes);

// A text of somebody else's as a piece of one line: cut off if it is long, and with a question mark
// for each byte that is not printable ASCII. etcd's own words lose nothing by it.
[[nodiscard]] std::string one_line(std::string_view text);

}  // namespace monolock::etcd
