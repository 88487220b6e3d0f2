#include "etcd/messages/json_reader.hpp"

#include <sodium/utils.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "config/number.hpp"

namespace monolock::etcd {

namespace {

// How much of a text of somebody else's is repeated.
constexpr std::size_t repeated_bytes_max = 200;

[[noreturn]] void throw_odd(const char* key, const char* what) {
    throw odd_message{std::string{"\""} + key + "\" is " + what};
}

// Looks at the events of the parser, and throws for what the document would not show any more.
class strictness {
public:
    bool operator()(int depth, json::parse_event_t event, const json& value) {
        // The deepest of etcd's: a key's value in a range in a response of a transaction.
        constexpr int depth_max = 12;
        if (depth > depth_max) {
            throw odd_message{"JSON that is nested too deeply"};
        }
        switch (event) {
            case json::parse_event_t::object_start:
                members_.emplace_back();
                break;
            case json::parse_event_t::object_end:
                members_.pop_back();
                break;
            case json::parse_event_t::key:
                if (!members_.back().insert(value.get<std::string>()).second) {
                    throw odd_message{"JSON with a member that is there twice"};
                }
                break;
            case json::parse_event_t::array_start:
            case json::parse_event_t::array_end:
            case json::parse_event_t::value:
                break;
        }
        return true;
    }

private:
    std::vector<std::set<std::string>> members_;  // of the objects that are open
};

}  // namespace

json parse_object(std::string_view text) {
    // The library takes it for the end of the text, and would not look at what follows.
    if (text.find('\0') != std::string_view::npos) {
        throw odd_message{"no JSON object, but a NUL"};
    }
    strictness strict;
    const json::parser_callback_t look = [&strict](int depth, json::parse_event_t event,
                                                   const json& value) {
        return strict(depth, event, value);
    };
    json document = json::parse(text, look, false);
    if (!document.is_object()) {
        throw odd_message{"no JSON object"};
    }
    return document;
}

const json* find(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t int64_at(const json& object, const char* key) {
    const json* const value = find(object, key);
    if (value == nullptr) {
        return 0;
    }
    constexpr auto number_max =
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value->is_number_unsigned() && value->get<std::uint64_t>() <= number_max) {
        return value->get<std::int64_t>();
    }
    if (value->is_number_integer() && !value->is_number_unsigned()) {
        return value->get<std::int64_t>();
    }
    if (value->is_string()) {
        const auto number =
            config::parse_number<std::int64_t>(value->get_ref<const std::string&>());
        if (number) {
            return *number;
        }
    }
    throw_odd(key, "no whole number of 64 bits");
}

bool bool_at(const json& object, const char* key) {
    const json* const value = find(object, key);
    if (value != nullptr && !value->is_boolean()) {
        throw_odd(key, "neither true nor false");
    }
    return value != nullptr && value->get<bool>();
}

std::string text_at(const json& object, const char* key) {
    const json* const value = find(object, key);
    if (value != nullptr && !value->is_string()) {
        throw_odd(key, "no text");
    }
    return value == nullptr ? std::string{} : value->get<std::string>();
}

std::string bytes_at(const json& object, const char* key) {
    const std::string text = text_at(object, key);
    std::string bytes(text.size() / 4 * 3, '\0');
    std::size_t size = 0;
    if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                          text.size(), nullptr, &size, nullptr,
                          sodium_base64_VARIANT_ORIGINAL) != 0) {
        throw_odd(key, "no base64");
    }
    bytes.resize(size);
    return bytes;
}

const json& object_at(const json& object, const char* key) {
    static const json empty = json::object();
    const json* const value = find(object, key);
    if (value != nullptr && !value->is_object()) {
        throw_odd(key, "no object");
    }
    return value == nullptr ? empty : *value;
}

const json& list_at(const json& object, const char* key) {
    static const json empty = json::array();
    const json* const value = find(object, key);
    if (value != nullptr && !value->is_array()) {
        throw_odd(key, "no list");
    }
    return value == nullptr ? empty : *value;
}

std::string to_base64(std::string_view bytes) {
    // The length is with the NUL that ends it.
    std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
    sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL);
    text.pop_back();
    return text;
}

std::string one_line(std::string_view text) {
    const std::string_view begin = text.substr(0, repeated_bytes_max);
    std::string line{begin};
    std::ranges::replace_if(
        line, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    return begin.size() < text.size() ? line + "..." : line;
}

}  // namespace monolock::etcd
