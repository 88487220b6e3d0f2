#include "etcd/messages/calls.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {

namespace {

using coordination::lease_id;
using coordination::revision;
using coordination::term;

constexpr std::size_t prefix_shown_max = 80;

std::string number(std::int64_t value) {
    return std::to_string(value);
}

json range(const std::string& key) {
    return {{"key", key}};
}

template <class Record>
json put(const std::string& key, const Record& record) {
    return {{"request_put", {{"key", key}, {"value", to_base64(to_text(record))}}}};
}
template <class Record>
json put(const std::string& key, const Record& record, lease_id under) {
    json made = put(key, record);
    made["request_put"]["lease"] = number(under.value);
    return made;
}

json is_created_at(const key_names& keys, revision at) {
    return {{"target", "CREATE"},
            {"result", "EQUAL"},
            {"key", keys.active},
            {"create_revision", number(at.value)}};
}
json is_modified_at(const key_names& keys, revision at) {
    return {{"target", "MOD"},
            {"result", "EQUAL"},
            {"key", keys.active},
            {"mod_revision", number(at.value)}};
}

// Whether or not the comparison holds, `active` is what the answer to a failure shows.
http_call transaction(const key_names& keys, const json& compare, const json& success) {
    const json failure = json::array({{{"request_range", range(keys.active)}}});
    return {"/v3/kv/txn",
            json{{"compare", compare}, {"success", success}, {"failure", failure}}.dump()};
}

struct maker {
    const key_names& keys;

    http_call operator()(const coordination::grant_lease& what) const {
        return {"/v3/lease/grant", json{{"TTL", number(what.ttl.count())}}.dump()};
    }
    http_call operator()(const coordination::keep_lease_alive& what) const {
        return {"/v3/lease/keepalive", json{{"ID", number(what.lease.value)}}.dump()};
    }
    http_call operator()(const coordination::revoke_lease& what) const {
        return {"/v3/lease/revoke", json{{"ID", number(what.lease.value)}}.dump()};
    }
    http_call operator()(const coordination::look&) const {
        json body = range(keys.active);
        body["serializable"] = false;  // linearizable: as of now, and not of when it was last told
        return {"/v3/kv/range", body.dump()};
    }
    http_call operator()(const coordination::campaign& what) const {
        return transaction(keys, json::array({is_created_at(keys, revision{0})}),
                           json::array({put(keys.active, what.value, what.lease),
                                        {{"request_range", range(keys.state)}}}));
    }
    http_call operator()(const coordination::renew& what) const {
        json puts = json::array({put(keys.active, what.value, what.lease)});
        if (what.state) {
            puts.push_back(put(keys.state, *what.state));
        }
        return transaction(keys, unchanged(what.mine, what.known), puts);
    }
    http_call operator()(const coordination::resign& what) const {
        return transaction(keys, unchanged(what.mine, what.known),
                           json::array({put(keys.state, what.state),
                                        {{"request_delete_range", range(keys.active)}}}));
    }

private:
    [[nodiscard]] json unchanged(term mine, revision known) const {
        return json::array({is_created_at(keys, mine), is_modified_at(keys, known)});
    }
};

}  // namespace

key_names::key_names(std::string_view before)
    : active{to_base64(std::string{before} + "active")},
      state{to_base64(std::string{before} + "state")},
      prefix{one_line(before.size() > prefix_shown_max
                          ? std::string{before.substr(0, prefix_shown_max)} + "..."
                          : std::string{before})} {}

http_call call_for(const coordination::request& what, const key_names& keys) {
    return std::visit(maker{keys}, what);
}

http_call watch_call(revision from, const key_names& keys) {
    json create = range(keys.active);
    create["start_revision"] = number(std::max<std::int64_t>(from.value - 1, 1));
    return {"/v3/watch", json{{"create_request", create}}.dump()};
}

http_call authenticate_call(const credentials& who) {
    return {"/v3/auth/authenticate", json{{"name", who.user}, {"password", who.password}}.dump()};
}

}  // namespace monolock::etcd
