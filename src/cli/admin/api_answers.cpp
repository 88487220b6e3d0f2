#include "cli/admin/api_answers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/admin/admin_error.hpp"

namespace monolock::cli {

namespace {

using std::chrono::milliseconds;

[[noreturn]] void throw_unknown(const std::string& why) {
    throw bad_answer{why};
}

const json& at(const json& document, const char* key) {
    const auto found = document.is_object() ? document.find(key) : document.end();
    if (found == document.end()) {
        throw_unknown(std::string{"no \""} + key + '"');
    }
    return *found;
}

std::string text_at(const json& document, const char* key) {
    const json& value = at(document, key);
    if (!value.is_string()) {
        throw_unknown(std::string{"\""} + key + "\" is no text");
    }
    return value.get<std::string>();
}

std::uint64_t count_at(const json& document, const char* key) {
    const json& value = at(document, key);
    if (!value.is_number_unsigned()) {
        throw_unknown(std::string{"\""} + key + "\" is no count");
    }
    return value.get<std::uint64_t>();
}

// An id, a token: counted from 1.
std::uint64_t number_at(const json& document, const char* key) {
    const std::uint64_t number = count_at(document, key);
    if (number == 0) {
        throw_unknown(std::string{"\""} + key + "\" is out of range");
    }
    return number;
}

// 285,000 years at the most, so that a few times as much can be computed with.
milliseconds age_at(const json& document, const char* key) {
    constexpr std::uint64_t age_max = std::uint64_t{1} << 53U;
    const std::uint64_t count = count_at(document, key);
    if (count > age_max) {
        throw_unknown(std::string{"\""} + key + "\" is out of range");
    }
    return milliseconds{count};
}

const json& list_at(const json& document, const char* key) {
    const json& value = at(document, key);
    if (!value.is_array()) {
        throw_unknown(std::string{"\""} + key + "\" is no list");
    }
    return value;
}

void read_claim(claim_facts& into, const json& document) {
    into.id = number_at(document, "id");
    into.identity = text_at(document, "identity");
    into.remote_addr = text_at(document, "remote_addr");
    into.lease = age_at(document, "lease_ms");
}

}  // namespace

json parse_object(std::string_view text) {
    constexpr int depth_max = 16;  // the deepest of the API: a waiter in a lock in a listing
    const json::parser_callback_t bounded = [](int depth, json::parse_event_t, json&) {
        if (depth > depth_max) {
            throw_unknown("JSON that is nested too deeply");
        }
        return true;
    };
    json document = json::parse(text, bounded, false);
    // The library takes a NUL for the end of the text, and does not look at what follows.
    if (text.find('\0') != std::string_view::npos || document.is_discarded() ||
        !document.is_object()) {
        throw_unknown("no JSON");
    }
    return document;
}

std::string to_line(const json& document) {
    return document.dump(-1, ' ', true, json::error_handler_t::replace) + '\n';
}

json error_document(std::string_view why) {
    return json::object({{"error", why}});
}

holder_facts holder_from(const json& document) {
    holder_facts made;
    read_claim(made, document);
    made.since = text_at(document, "since");
    made.held = age_at(document, "held_ms");
    made.silent = age_at(document, "silent_ms");
    made.token = number_at(document, "token");
    return made;
}

waiter_facts waiter_from(const json& document) {
    waiter_facts made;
    read_claim(made, document);
    made.waited = age_at(document, "waited_ms");
    return made;
}

lock_facts lock_from(const json& document) {
    lock_facts made{.name = text_at(document, "name"),
                    .holder = std::nullopt,
                    .waiters = {},
                    .waiters_total = count_at(document, "waiters_total")};
    if (const json& holder = at(document, "holder"); !holder.is_null()) {
        made.holder = holder_from(holder);
    }
    for (const json& each : list_at(document, "waiters")) {
        made.waiters.push_back(waiter_from(each));
    }
    if (made.waiters.size() > made.waiters_total) {
        throw_unknown("more waiters than \"waiters_total\"");
    }
    return made;
}

std::vector<lock_facts> locks_from(const json& document, std::string_view behind) {
    std::vector<lock_facts> made;
    std::string last{behind};
    for (const json& each : list_at(document, "locks")) {
        made.push_back(lock_from(each));
        if (made.back().name <= last) {
            throw_unknown("a listing that is not in order");
        }
        last = made.back().name;
    }
    return made;
}

std::optional<std::string> next_page_from(const json& page) {
    if (!page.contains("next")) {
        return std::nullopt;
    }
    std::string next = text_at(page, "next");
    const bool plain =
        std::ranges::all_of(next, [](char letter) { return letter > ' ' && letter < '\x7f'; });
    if (!plain || !next.starts_with("/api/locks?")) {
        throw_unknown("\"next\" is no page of a listing");
    }
    return next;
}

change_facts change_from(const json& document) {
    change_facts made{.event = text_at(document, "event"),
                      .time = text_at(document, "time"),
                      .name = text_at(document, "name"),
                      .identity = text_at(document, "identity"),
                      .remote_addr = text_at(document, "remote_addr"),
                      .token = number_at(document, "token"),
                      .lasted = {},
                      .reason = {}};
    const bool granted = made.event == "granted";
    made.lasted = age_at(document, granted ? "wait_ms" : "held_ms");
    if (!granted) {
        made.reason = text_at(document, "reason");
    }
    return made;
}

std::uint64_t lost_from(const json& document) {
    return count_at(document, "changes");
}

void check_info(const json& document) {
    static_cast<void>(text_at(document, "version"));
    static_cast<void>(age_at(document, "uptime_ms"));
    static_cast<void>(count_at(document, "locks"));
    static_cast<void>(count_at(document, "sessions"));
    if (!at(document, "config").is_object()) {
        throw_unknown("\"config\" is no object");
    }
}

void check_name(const json& document, std::string_view name) {
    if (text_at(document, "name") != name) {
        throw_unknown("it tells of another lock");
    }
}

std::optional<std::string> text_of(const json& document, std::string_view key) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_string()) {
        return std::nullopt;
    }
    return found->get<std::string>();
}

}  // namespace monolock::cli
