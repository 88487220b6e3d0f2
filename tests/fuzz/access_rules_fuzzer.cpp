// The reader of access rules, which takes the document as it is parsed, against a tree of it that
// another reader made: what it accepts, what it reads, and that every diagnostic is one line of
// text that forges nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/access_rules_json.hpp"
#include "config/glob.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/json_oracle.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace config = monolock::config;
namespace fuzz = monolock::fuzz;
using fuzz::json_node;
using fuzz::require;

bool is_pattern(const json_node& value) {
    return value.what == json_node::kind::string && !value.text.empty();
}

bool is_rule(const json_node& value) {
    const json_node* const identity = value.find("identity");
    const json_node* const locks = value.find("locks");
    return value.items.size() == 2 && identity != nullptr && locks != nullptr &&
           is_pattern(*identity) && locks->what == json_node::kind::array &&
           !locks->items.empty() && std::ranges::all_of(locks->items, is_pattern);
}

std::optional<std::vector<config::access_rule>> oracle(std::string_view text) {
    const auto tree = fuzz::json_oracle::parse(text);
    const json_node* const list = tree && tree->items.size() == 1 ? tree->find("rules") : nullptr;
    if (list == nullptr || list->what != json_node::kind::array ||
        !std::ranges::all_of(list->items, is_rule)) {
        return std::nullopt;
    }
    std::vector<config::access_rule> rules;
    for (const json_node& each : list->items) {
        config::access_rule& rule = rules.emplace_back();
        rule.identity = each.find("identity")->text;
        for (const json_node& lock : each.find("locks")->items) {
            rule.locks.push_back(lock.text);
        }
    }
    return rules;
}

// What the rules permit, one pattern after the other; asked of their own texts, which match often.
void check_permissions(const config::access_rules& rules,
                       const std::vector<config::access_rule>& list) {
    const auto permits = [&](std::string_view identity, std::string_view lock) {
        return std::ranges::any_of(list, [&](const config::access_rule& each) {
            return config::matches_glob(each.identity, identity) &&
                   std::ranges::any_of(each.locks, [&](const std::string& pattern) {
                       return config::matches_glob(pattern, lock);
                   });
        });
    };
    const std::size_t few = std::min<std::size_t>(list.size(), 3);
    for (std::size_t who = 0; who < few; ++who) {
        for (std::size_t what = 0; what < few; ++what) {
            const std::string& identity = list[who].identity;
            const std::string& lock = list[what].locks.back();
            const bool expected = permits(identity, lock);
            require(rules.permits(identity, lock) == expected);
            const auto why = rules.find(identity, lock);
            require(why.has_value() == expected);
            require(!why || (why->identity == list[why->rule].identity &&
                             why->lock == list[why->rule].locks[why->pattern]));
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text{fuzz::text_of(data, size)};
    const auto rules = config::parse_access_rules("f", text);
    const auto expected = oracle(text);
    require(static_cast<bool>(rules) == expected.has_value());
    if (rules) {
        require(*rules == config::access_rules{*expected});
        check_permissions(*rules, *expected);
        return 0;
    }
    require(!rules.error().empty());
    for (const config::diagnostic& each : rules.error()) {
        require(each.text.starts_with("f:") && fuzz::is_one_line(each.text));
    }
    return 0;
}
