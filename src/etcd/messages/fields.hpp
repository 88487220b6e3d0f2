#pragma once

#include <cstdint>
#include <string>

#include "coordination/records.hpp"
#include "etcd/messages/answers.hpp"
#include "etcd/messages/calls.hpp"
#include "etcd/messages/json_reader.hpp"

// What answers and events have in common. All throw odd_message.
namespace monolock::etcd {

// A revision is at least 1, and a few may be added to it.
[[nodiscard]] coordination::revision revision_at(const json& object, const char* key);
// "header": {"revision": …}, of an answer that has one.
[[nodiscard]] coordination::revision revision_of_store(const json& message);

// The entry itself, if it is of that key.
[[nodiscard]] const json& key_value_in(const json& entry, const std::string& key);
// What is in `active`, of its entry.
[[nodiscard]] coordination::active_entry active_entry_in(const json& entry, const key_names& keys);
// The same for whoever has the key, or had: what it can go by are the revisions, and its next
// renewal puts things right. So a value that cannot be read is one of nobody in particular.
[[nodiscard]] coordination::active_entry own_or_other_entry_in(const json& entry);
// A value that cannot be read, for whoever has to mend it.
[[nodiscard]] odd_message no_record(const key_names& keys, const char* key, const std::string& why);

// gRPC's number of a status, as etcd uses it.
inline constexpr std::int64_t grpc_not_found = 5;

struct store_error {
    std::int64_t code = 0;  // gRPC's; 0 if it is none of etcd's
    std::string message;

    [[nodiscard]] bool is_about_token() const;
    [[nodiscard]] bool is_about_authentication_off() const;
};
// Of an answer with another status than 200: what its body says, or else the status. Throws
// nothing.
[[nodiscard]] store_error error_in(const reply& from);
// Of a document that has a member "error", or is one.
[[nodiscard]] store_error error_in(const json& document);
[[nodiscard]] failure failure_of(const store_error& error);

}  // namespace monolock::etcd
