#include "etcd/messages/fields.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {

namespace {

using coordination::active_entry;
using coordination::active_record;
using coordination::revision;

// Of gRPC's codes: errors about the request, which another member would answer the same.
constexpr std::array<std::int64_t, 6> of_the_request = {
    3,  // invalid argument
    grpc_not_found,
    7,   // permission denied
    9,   // failed precondition
    11,  // out of range: a revision that is compacted away, a TTL that is too large
    16,  // unauthenticated
};

// Without its value.
active_entry revisions_in(const json& entry) {
    active_entry made{.value = {},
                      .created = revision_at(entry, "create_revision"),
                      .modified = revision_at(entry, "mod_revision")};
    if (made.modified < made.created) {
        throw odd_message{"a key that was modified before it was created"};
    }
    return made;
}

}  // namespace

revision revision_at(const json& object, const char* key) {
    constexpr std::int64_t revision_max = std::int64_t{1} << 62U;
    const revision at{int64_at(object, key)};
    if (at.value <= 0 || at.value > revision_max) {
        throw odd_message{std::string{"\""} + key + "\" is missing or out of range"};
    }
    return at;
}

revision revision_of_store(const json& message) {
    return revision_at(object_at(message, "header"), "revision");
}

const json& key_value_in(const json& entry, const std::string& key) {
    if (!entry.is_object() || text_at(entry, "key") != key) {
        throw odd_message{"it is about another key"};
    }
    return entry;
}

active_entry active_entry_in(const json& entry, const key_names& keys) {
    active_entry made = revisions_in(entry);
    auto record = read_active_record(bytes_at(entry, "value"));
    if (!record) {
        throw no_record(keys, "active", record.error().text);
    }
    made.value = *std::move(record);
    return made;
}

active_entry own_or_other_entry_in(const json& entry) {
    active_entry made = revisions_in(entry);
    auto record = read_active_record(bytes_at(entry, "value"));
    made.value =
        record ? *std::move(record) : active_record{.name = "what is there is no record of ours"};
    return made;
}

odd_message no_record(const key_names& keys, const char* key, const std::string& why) {
    return {"what is in \"" + keys.prefix + key + "\" is no record of ours: " + why +
            "; high-availability.md, \"Records that cannot be read\", says what to do"};
}

// 16 is a token that etcd does not know (any more). The other two come with the code of an invalid
// argument: no token while etcd wants one, and one from before a change of users or roles.
bool store_error::is_about_token() const {
    return code == 16 || message.find("user name is empty") != std::string::npos ||
           message.find("revision of auth store is old") != std::string::npos;
}

bool store_error::is_about_authentication_off() const {
    return message.find("authentication is not enabled") != std::string::npos;
}

// Gateways up to 3.5: {"error": "text", "code": 5, "message": "text"}, and in a stream
// {"error": {"grpc_code": 5, "http_code": 404, "message": "text", "http_status": "Not Found"}}.
// From 3.6: {"code": 5, "message": "text", "details": []}, and in a stream that as "error".
store_error error_in(const json& document) {
    const json* const error = find(document, "error");
    const json& told = error != nullptr && error->is_object() ? *error : document;
    store_error made{.code = int64_at(told, "code"), .message = text_at(told, "message")};
    if (made.code == 0) {
        made.code = int64_at(told, "grpc_code");
    }
    if (made.message.empty() && error != nullptr && error->is_string()) {
        made.message = error->get<std::string>();
    }
    if (made.message.empty()) {
        throw odd_message{"an error without a message"};
    }
    return made;
}

store_error error_in(const reply& from) {
    try {
        return error_in(parse_object(from.body));
    } catch (const odd_message&) {
        return {.code = 0,
                .message = "HTTP status " + std::to_string(from.status) +
                           ", and not from a JSON gateway of etcd"};
    }
}

failure failure_of(const store_error& error) {
    if (error.is_about_token()) {
        return {one_line(error.message), verdict::stale_token};
    }
    const bool keep = std::ranges::find(of_the_request, error.code) != of_the_request.end();
    return {one_line(error.message), keep ? verdict::keep : verdict::move_on};
}

}  // namespace monolock::etcd
