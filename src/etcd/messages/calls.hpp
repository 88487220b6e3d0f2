#pragma once

#include <string>
#include <string_view>

#include "coordination/store.hpp"

namespace monolock::etcd {

// The two keys below a prefix, in base64, as the gateway's JSON has them.
struct key_names {
    explicit key_names(std::string_view before);

    std::string active;
    std::string state;
    std::string prefix;  // for people: one line, cut off if it is long
};

// A POST of JSON.
struct http_call {
    std::string path;  // "/v3/kv/txn"
    std::string body;

    friend bool operator==(const http_call&, const http_call&) = default;
};

[[nodiscard]] http_call call_for(const coordination::request& what, const key_names& keys);

// The events of `active` as a stream, from the revision before that one: etcd before 3.4.34 and
// 3.5.16 forgets a deletion if its history is compacted at just that revision, and says nothing.
// What begins one earlier is told that it is compacted.
[[nodiscard]] http_call watch_call(coordination::revision from, const key_names& keys);

// Valid UTF-8, both.
struct credentials {
    std::string user;
    std::string password;

    friend bool operator==(const credentials&, const credentials&) = default;
};
[[nodiscard]] http_call authenticate_call(const credentials& who);

}  // namespace monolock::etcd
