#include "etcd/messages/calls.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {
namespace {

using namespace std::chrono_literals;

const key_names keys{"/monolock/"};
const coordination::active_record reigning{.name = "a:7070", .ttl = 5s, .sequence = 3};
const coordination::state_record reign{.ceiling = 9007199254740993,
                                       .longest_lease = 30s,
                                       .name = "a:7070",
                                       .ttl = 5s,
                                       .written_in = {17},
                                       .sequence = 3,
                                       .resigned = false};

// Whatever the order of its members.
void expect_call(const http_call& made, const std::string& path, const json& body) {
    EXPECT_EQ(made.path, path);
    EXPECT_EQ(json::parse(made.body), body);
    EXPECT_EQ(made.body.find('\n'), std::string::npos);
}

json value_of_active() {
    return to_base64(to_text(reigning));
}
json value_of_state() {
    return to_base64(to_text(reign));
}
json read_active() {
    return json::array({{{"request_range", {{"key", "L21vbm9sb2NrL2FjdGl2ZQ=="}}}}});
}

TEST(calls, keys_stand_below_the_prefix) {
    EXPECT_EQ(keys.active, "L21vbm9sb2NrL2FjdGl2ZQ==");  // /monolock/active
    EXPECT_EQ(keys.state, "L21vbm9sb2NrL3N0YXRl");       // /monolock/state
    EXPECT_EQ(key_names{""}.state, "c3RhdGU=");
    EXPECT_EQ(key_names{"\xff"}.state, "/3N0YXRl");
}

TEST(calls, of_leases) {
    expect_call(call_for(coordination::grant_lease{.ttl = 5s}, keys), "/v3/lease/grant",
                {{"TTL", "5"}});
    expect_call(call_for(coordination::keep_lease_alive{{9223372036854775807}}, keys),
                "/v3/lease/keepalive", {{"ID", "9223372036854775807"}});
    expect_call(call_for(coordination::revoke_lease{{7}}, keys), "/v3/lease/revoke", {{"ID", "7"}});
}

TEST(calls, a_look_is_linearizable) {
    expect_call(call_for(coordination::look{}, keys), "/v3/kv/range",
                {{"key", keys.active}, {"serializable", false}});
}

TEST(calls, a_campaign_puts_active_if_it_does_not_exist_and_reads_state) {
    expect_call(
        call_for(coordination::campaign{{7}, reigning}, keys), "/v3/kv/txn",
        {{"compare",
          {{{"target", "CREATE"},
            {"result", "EQUAL"},
            {"key", keys.active},
            {"create_revision", "0"}}}},
         {"success",
          {{{"request_put", {{"key", keys.active}, {"value", value_of_active()}, {"lease", "7"}}}},
           {{"request_range", {{"key", keys.state}}}}}},
         {"failure", read_active()}});
}

TEST(calls, a_renewal_puts_both_if_active_is_as_it_was) {
    expect_call(
        call_for(coordination::renew{{7}, {17}, {20}, reigning, reign}, keys), "/v3/kv/txn",
        {{"compare",
          {{{"target", "CREATE"},
            {"result", "EQUAL"},
            {"key", keys.active},
            {"create_revision", "17"}},
           {{"target", "MOD"}, {"result", "EQUAL"}, {"key", keys.active}, {"mod_revision", "20"}}}},
         {"success",
          {{{"request_put", {{"key", keys.active}, {"value", value_of_active()}, {"lease", "7"}}}},
           {{"request_put", {{"key", keys.state}, {"value", value_of_state()}}}}}},
         {"failure", read_active()}});
}

TEST(calls, a_renewal_without_a_state_leaves_that_alone) {
    const http_call call =
        call_for(coordination::renew{{7}, {17}, {20}, reigning, std::nullopt}, keys);
    EXPECT_EQ(
        json::parse(call.body).at("success"),
        json::array({{{"request_put",
                       {{"key", keys.active}, {"value", value_of_active()}, {"lease", "7"}}}}}));
}

TEST(calls, a_resignation_deletes_active) {
    expect_call(
        call_for(coordination::resign{{17}, {20}, reign}, keys), "/v3/kv/txn",
        {{"compare",
          {{{"target", "CREATE"},
            {"result", "EQUAL"},
            {"key", keys.active},
            {"create_revision", "17"}},
           {{"target", "MOD"}, {"result", "EQUAL"}, {"key", keys.active}, {"mod_revision", "20"}}}},
         {"success",
          {{{"request_put", {{"key", keys.state}, {"value", value_of_state()}}}},
           {{"request_delete_range", {{"key", keys.active}}}}}},
         {"failure", read_active()}});
}

TEST(calls, a_watch_begins_one_earlier) {
    expect_call(watch_call({22}, keys), "/v3/watch",
                {{"create_request", {{"key", keys.active}, {"start_revision", "21"}}}});
    expect_call(watch_call({1}, keys), "/v3/watch",
                {{"create_request", {{"key", keys.active}, {"start_revision", "1"}}}});
}

TEST(calls, an_authentication) {
    expect_call(authenticate_call({.user = "ä\"", .password = "p:w\\"}), "/v3/auth/authenticate",
                {{"name", "ä\""}, {"password", "p:w\\"}});
}

}  // namespace
}  // namespace monolock::etcd
