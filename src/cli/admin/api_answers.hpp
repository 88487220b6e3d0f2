#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monolock::cli {

// What the admin API answers (docs/openapi.yaml), as values. Pure. Keys that are not known here are
// passed over, so a newer server may say more.

using json = nlohmann::ordered_json;

struct claim_facts {
    std::uint64_t id = 0;
    std::string identity;  // empty without mutual TLS
    std::string remote_addr;
    std::chrono::milliseconds lease{};
};

struct holder_facts : claim_facts {
    std::string since;  // RFC 3339
    std::chrono::milliseconds held{};
    std::chrono::milliseconds silent{};  // since the server last heard from it
    std::uint64_t token = 0;
};

struct waiter_facts : claim_facts {
    std::chrono::milliseconds waited{};
};

struct lock_facts {
    std::string name;
    std::optional<holder_facts> holder;  // absent only while the server grants nothing
    std::vector<waiter_facts> waiters;   // in order; in a listing the first 100
    std::uint64_t waiters_total = 0;
};

// A change of a lock's owner.
struct change_facts {
    std::string event;  // "granted" or "released"
    std::string time;
    std::string name;
    std::string identity;
    std::string remote_addr;
    std::uint64_t token = 0;
    std::chrono::milliseconds lasted{};  // the wait before a grant, the hold before a release
    std::string reason;                  // of a release
};

// The document, whatever it says. Throws bad_answer if the text is no JSON object, or one that is
// nested deeper than any of the API: what works on a document works on its depth with the stack.
[[nodiscard]] json parse_object(std::string_view text);

// The document on one line, in ASCII: nothing in it moves a cursor.
[[nodiscard]] std::string to_line(const json& document);

// {"error": "why"}, as the server has it too.
[[nodiscard]] json error_document(std::string_view why);

// Each throws bad_answer if the document is not what it should be: the way to check one that is
// shown as it came, too.
[[nodiscard]] holder_facts holder_from(const json& document);
[[nodiscard]] waiter_facts waiter_from(const json& document);
[[nodiscard]] lock_facts lock_from(const json& document);
// A listing, or a page of one: names rise, from behind that one.
[[nodiscard]] std::vector<lock_facts> locks_from(const json& document,
                                                 std::string_view behind = {});
// Where the page behind this one is, on the same server; nothing if this is the last.
[[nodiscard]] std::optional<std::string> next_page_from(const json& page);
[[nodiscard]] change_facts change_from(const json& document);
// How many changes a "lost" event tells of.
[[nodiscard]] std::uint64_t lost_from(const json& document);

// Throws bad_answer unless it says of a server what info says.
void check_info(const json& document);
// Throws bad_answer unless it tells of the lock of that name.
void check_name(const json& document, std::string_view name);

// The text under the key; nothing if there is none.
[[nodiscard]] std::optional<std::string> text_of(const json& document, std::string_view key);

}  // namespace monolock::cli
