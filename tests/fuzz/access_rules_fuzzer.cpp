// The reader of access rules, which takes the document as it is parsed, against the tree that the
// JSON library makes of it: what it accepts, what it reads, and that every diagnostic is one line
// of text that forges nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/access_rules_json.hpp"
#include "fuzz/pieces.hpp"
#include "fuzz/utf8_oracle.hpp"

namespace {

namespace config = monolock::config;
using monolock::fuzz::require;
using nlohmann::json;

// The tree, or nothing if the text is no JSON or some object has a key twice.
std::optional<json> tree_of(const std::string& text) {
    if (text.find('\0') != std::string::npos || text.starts_with("\xEF\xBB\xBF")) {
        return std::nullopt;  // the library would let these pass
    }
    std::vector<std::set<std::string>> keys;
    bool repeated = false;
    const auto watch = [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::object_start) {
            keys.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            keys.pop_back();
        } else if (event == json::parse_event_t::key) {
            repeated |= !keys.back().insert(value.get<std::string>()).second;
        }
        return true;
    };
    json tree = json::parse(text, watch, false);
    return tree.is_discarded() || repeated ? std::nullopt : std::optional{std::move(tree)};
}

bool is_pattern(const json& value) {
    return value.is_string() && !value.get_ref<const std::string&>().empty();
}

bool is_rule(const json& value) {
    return value.is_object() && value.size() == 2 && value.contains("identity") &&
           value.contains("locks") && is_pattern(value["identity"]) && value["locks"].is_array() &&
           !value["locks"].empty() && std::ranges::all_of(value["locks"], is_pattern);
}

std::optional<config::access_rules> oracle(const std::string& text) {
    const std::optional<json> tree = tree_of(text);
    const bool valid = tree && tree->is_object() && tree->size() == 1 && tree->contains("rules") &&
                       (*tree)["rules"].is_array() &&
                       std::ranges::all_of((*tree)["rules"], is_rule);
    if (!valid) {
        return std::nullopt;
    }
    std::vector<config::access_rule> rules;
    for (const json& each : (*tree)["rules"]) {
        rules.push_back({.identity = each["identity"].get<std::string>(),
                         .locks = each["locks"].get<std::vector<std::string>>()});
    }
    return config::access_rules{std::move(rules)};
}

bool is_one_line(std::string_view text) {
    const bool controls = std::ranges::any_of(text, [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
    });
    return !controls && monolock::fuzz::utf8_oracle(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{reinterpret_cast<const char*>(data), size};
    const auto rules = config::parse_access_rules("f", text);
    const auto expected = oracle(text);
    require(static_cast<bool>(rules) == expected.has_value());
    if (rules) {
        require(*rules == *expected);
        return 0;
    }
    require(!rules.error().empty());
    for (const config::diagnostic& each : rules.error()) {
        require(each.text.starts_with("f:") && is_one_line(each.text));
    }
    return 0;
}
