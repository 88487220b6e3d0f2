#include "etcd/messages/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {
namespace {

using coordination::active_record;
using coordination::revision;
using coordination::state_record;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

const key_names keys{"/monolock/"};
const active_record reigning{.name = "a:7070", .ttl = milliseconds{5000}, .sequence = 3};
const state_record reign{.ceiling = record_ceiling_max,
                         .longest_lease = milliseconds{30000},
                         .name = "a:7070",
                         .ttl = milliseconds{5000},
                         .written_in = {17},
                         .sequence = 3,
                         .resigned = false};

const coordination::grant_lease grant{.ttl = seconds{5}};
const coordination::keep_lease_alive keep{.lease = {7}};
const coordination::revoke_lease revoke{.lease = {7}};
const coordination::campaign campaign{.lease = {7}, .value = reigning};
const coordination::renew renew{
    .lease = {7}, .mine = {17}, .known = {20}, .value = reigning, .state = reign};
const coordination::resign resign{.mine = {17}, .known = {20}, .state = reign};

// As etcd 3.4 writes them.
const std::string header =
    R"("header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952","revision":"21","raft_term":"2"})";

std::string entry(const std::string& key, const std::string& value,
                  const std::string& created = "17", const std::string& modified = "20") {
    return R"({"key":")" + key + R"(","create_revision":")" + created + R"(","mod_revision":")" +
           modified + R"(","version":"4","value":")" + to_base64(value) +
           R"(","lease":"2324035714104257543"})";
}
const std::string active = entry(keys.active, to_text(reigning));
const std::string state = entry(keys.state, to_text(reign));

std::string range(const std::string& entry) {
    return R"({"response_range":{"header":{"revision":"21"},"kvs":[)" + entry +
           R"(],"count":"1"}})";
}
const std::string put = R"({"response_put":{"header":{"revision":"21"}}})";
const std::string empty_range = R"({"response_range":{"header":{"revision":"21"}}})";
const std::string deletion =
    R"({"response_delete_range":{"header":{"revision":"21"},"deleted":"1"}})";

std::string done(const std::string& responses) {
    return "{" + header + R"(,"succeeded":true,"responses":[)" + responses + "]}";
}
std::string not_done(const std::string& responses) {
    return "{" + header + R"(,"responses":[)" + responses + "]}";
}

template <class Answer>
Answer answer_to(const coordination::request& asked, const std::string& body) {
    const reading read = read_answer(asked, keys, {.status = 200, .body = body});
    const auto* const why = std::get_if<coordination::failed>(&read.what);
    EXPECT_TRUE(std::holds_alternative<Answer>(read.what)) << (why == nullptr ? "" : why->why);
    EXPECT_EQ(read.of_endpoint, verdict::keep);
    return std::holds_alternative<Answer>(read.what) ? std::get<Answer>(read.what) : Answer{};
}

// What is odd about an answer, after which the next endpoint is asked.
std::string odd_in(const coordination::request& asked, const std::string& body) {
    const reading read = read_answer(asked, keys, {.status = 200, .body = body});
    EXPECT_TRUE(std::holds_alternative<coordination::failed>(read.what)) << body;
    EXPECT_EQ(read.of_endpoint, verdict::move_on);
    const auto* const why = std::get_if<coordination::failed>(&read.what);
    return why == nullptr ? "" : why->why;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), with);
}

TEST(answers, a_lease) {
    const auto made = answer_to<coordination::lease_granted>(
        grant, "{" + header + R"(,"ID":"2324035714104257541","TTL":"5"})");
    EXPECT_EQ(made.lease.value, 2324035714104257541);
    EXPECT_EQ(made.ttl, seconds{5});
    // Numbers as numbers are understood too.
    EXPECT_EQ(answer_to<coordination::lease_granted>(grant, R"({"ID":9,"TTL":6})").ttl, seconds{6});
}

TEST(answers, a_lease_has_an_id_and_a_ttl) {
    for (const char* const body :
         {R"({"TTL":"5"})", R"({"ID":"7"})", R"({"ID":"7","TTL":"0"})", R"({"ID":"0","TTL":"5"})",
          R"({"ID":"-7","TTL":"5"})", R"({"ID":"7","TTL":"-5"})", "{}"}) {
        EXPECT_THAT(odd_in(grant, body), HasSubstr("without an id or a TTL")) << body;
    }
    EXPECT_THAT(odd_in(grant, R"({"ID":"7","TTL":"31536001"})"), HasSubstr("out of range"));
    EXPECT_EQ(answer_to<coordination::lease_granted>(grant, R"({"ID":"7","TTL":"31536000"})").ttl,
              std::chrono::hours{24 * 365});
}

TEST(answers, a_number_is_whole_and_of_64_bits) {
    for (const char* const ttl :
         {"5.0", "1e1", "\"5.0\"", "\" 5\"", "\"+5\"", "\"0x5\"", "\"\"", "true", "[5]", "{}",
          "9223372036854775808", "\"9223372036854775808\"", "18446744073709551616", "1e400"}) {
        EXPECT_NE(odd_in(grant, std::string{R"({"ID":"7","TTL":)"} + ttl + "}"), "") << ttl;
    }
    EXPECT_EQ(
        answer_to<coordination::lease_granted>(grant, R"({"ID":9223372036854775807,"TTL":"5"})")
            .lease.value,
        9223372036854775807);
    EXPECT_THAT(odd_in(grant, R"({"ID":-1,"TTL":"5"})"), HasSubstr("without an id"));
}

TEST(answers, a_kept_lease) {
    const std::string begin = R"({"result":{)" + header + R"(,"ID":"7")";
    EXPECT_EQ(answer_to<coordination::lease_kept>(keep, begin + R"(,"TTL":"5"}})" + "\n").ttl,
              seconds{5});
    EXPECT_EQ(answer_to<coordination::lease_kept>(keep, begin + "}}").ttl, seconds{0});
    EXPECT_EQ(answer_to<coordination::lease_kept>(keep, begin + R"(,"TTL":"-1"}})").ttl,
              seconds{0});
    EXPECT_EQ(answer_to<coordination::lease_kept>(keep, begin + R"(,"TTL":null}})").ttl,
              seconds{0});
}

TEST(answers, a_kept_lease_is_the_one_that_was_asked_for) {
    for (const char* const body :
         {R"({"result":{"ID":"8","TTL":"5"}})", R"({"result":{"TTL":"5"}})", R"({"result":{}})",
          "{}", R"({"ID":"7","TTL":"5"})"}) {
        EXPECT_THAT(odd_in(keep, body), HasSubstr("another lease")) << body;
    }
    EXPECT_THAT(odd_in(keep, R"({"result":[]})"), HasSubstr("no object"));
    // One answer, not two.
    const std::string one = R"({"result":{"ID":"7","TTL":"5"}})";
    EXPECT_NE(odd_in(keep, one + "\n" + one), "");
}

TEST(answers, a_revoked_lease) {
    answer_to<coordination::lease_revoked>(revoke, "{" + header + "}");
    EXPECT_NE(odd_in(revoke, "{}"), "");
    // None is there any more, which is what was wanted.
    const reading gone = read_answer(
        revoke, keys,
        {.status = 404,
         .body =
             R"({"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5})"});
    EXPECT_TRUE(std::holds_alternative<coordination::lease_revoked>(gone.what));
    EXPECT_EQ(gone.of_endpoint, verdict::keep);
}

TEST(answers, a_look) {
    const auto found = answer_to<coordination::seen>(
        coordination::look{}, "{" + header + R"(,"kvs":[)" + active + R"(],"count":"1"})");
    ASSERT_TRUE(found.active);
    EXPECT_EQ(found.active->value, reigning);
    EXPECT_EQ(found.active->created, revision{17});
    EXPECT_EQ(found.active->modified, revision{20});
    EXPECT_EQ(found.as_of, revision{21});

    const auto nothing = answer_to<coordination::seen>(coordination::look{}, "{" + header + "}");
    EXPECT_FALSE(nothing.active);
    EXPECT_EQ(nothing.as_of, revision{21});
}

TEST(answers, a_look_makes_up_nothing) {
    const auto with = [](const std::string& kvs, const std::string& count = "1") {
        return odd_in(coordination::look{},
                      "{" + header + R"(,"kvs":[)" + kvs + R"(],"count":")" + count + R"("})");
    };
    EXPECT_THAT(with(active + "," + active, "2"), HasSubstr("count"));
    EXPECT_THAT(with(active, "2"), HasSubstr("count"));
    EXPECT_THAT(with("", "1"), HasSubstr("count"));
    EXPECT_THAT(odd_in(coordination::look{}, "{" + header + R"(,"kvs":[)" + active + "]}"),
                HasSubstr("count"));
    EXPECT_THAT(with(state), HasSubstr("another key"));
    EXPECT_THAT(with("7"), HasSubstr("another key"));
    EXPECT_THAT(with(entry(keys.active, "by hand")), HasSubstr("no record of ours"));
    EXPECT_THAT(with(entry(keys.active, "")), HasSubstr("in \"/monolock/active\" is no record"));
    EXPECT_THAT(with(replaced(active, R"("value":")", R"("value":"!)")), HasSubstr("no base64"));
    EXPECT_THAT(with(replaced(active, R"("value":)", R"("value":7,"v":)")), HasSubstr("no text"));
    EXPECT_THAT(with(entry(keys.active, to_text(reigning), "20", "17")), HasSubstr("before"));
    EXPECT_THAT(with(entry(keys.active, to_text(reigning), "17", "22")), HasSubstr("newer"));
    EXPECT_THAT(with(entry(keys.active, to_text(reigning), "0", "17")), HasSubstr("revision"));
    EXPECT_THAT(with(entry(keys.active, to_text(reigning), "17", "0")), HasSubstr("revision"));
    EXPECT_THAT(with(entry(keys.active, to_text(reigning), "17", "4611686018427387905")),
                HasSubstr("out of range"));
    EXPECT_THAT(odd_in(coordination::look{}, "{}"), HasSubstr("revision"));
    EXPECT_THAT(odd_in(coordination::look{}, R"({"header":{"revision":"-1"}})"),
                HasSubstr("revision"));
    EXPECT_THAT(odd_in(coordination::look{}, R"({"header":7})"), HasSubstr("no object"));
    EXPECT_THAT(odd_in(coordination::look{}, "{" + header + R"(,"kvs":{}})"), HasSubstr("no list"));
}

TEST(answers, a_campaign_that_is_won) {
    const auto first = answer_to<coordination::campaigned>(campaign, done(put + "," + empty_range));
    EXPECT_TRUE(first.won);
    EXPECT_EQ(first.at, revision{21});
    EXPECT_FALSE(first.state);
    EXPECT_FALSE(first.active);

    const auto later =
        answer_to<coordination::campaigned>(campaign, done(put + "," + range(state)));
    EXPECT_TRUE(later.won);
    ASSERT_TRUE(later.state);
    EXPECT_EQ(*later.state, reign);
}

TEST(answers, a_campaign_that_is_lost) {
    const auto lost = answer_to<coordination::campaigned>(campaign, not_done(range(active)));
    EXPECT_FALSE(lost.won);
    ASSERT_TRUE(lost.active);
    EXPECT_EQ(lost.active->value, reigning);
    EXPECT_FALSE(lost.state);
    // Lost to nobody it cannot be.
    EXPECT_THAT(odd_in(campaign, not_done(empty_range)), HasSubstr("its condition holds"));
    // Nor without a response.
    EXPECT_THAT(odd_in(campaign, "{" + header + "}"), HasSubstr("number of responses"));
}

TEST(answers, a_campaign_won_over_a_state_that_nobody_can_read_is_none) {
    for (const std::string& value : {std::string{}, std::string{"{}"}, to_text(reigning)}) {
        EXPECT_THAT(odd_in(campaign, done(put + "," + range(entry(keys.state, value)))),
                    HasSubstr("what is in \"/monolock/state\""));
    }
    const std::string other = replaced(to_text(reign), R"("format":"1")", R"("format":"2")");
    const std::string why = odd_in(campaign, done(put + "," + range(entry(keys.state, other))));
    EXPECT_THAT(why, HasSubstr("of another format; high-availability.md"));
    EXPECT_THAT(odd_in(campaign, done(put + "," + range(active))), HasSubstr("another key"));
}

TEST(answers, what_cannot_be_read_is_named_with_its_prefix_in_one_line_that_is_not_too_long) {
    const key_names long_ones{std::string(1000, 'a') + "\n"};
    const std::string body =
        done(put + "," + range(entry(long_ones.state, R"({"format":"1","ceiling":"no number"})")));
    const reading read = read_answer(campaign, long_ones, {.status = 200, .body = body});
    const std::string why = std::get<coordination::failed>(read.what).why;
    EXPECT_THAT(why, HasSubstr("aaa...state\""));
    EXPECT_LE(why.size(), why_bytes_max);
    EXPECT_EQ(key_names{"/a\n\xff/"}.prefix,
              "/a?"
              "?/");
}

TEST(answers, a_transaction_that_succeeded_has_the_responses_that_were_asked_for) {
    const std::string count = "number of responses";
    EXPECT_THAT(odd_in(campaign, done("")), HasSubstr(count));
    EXPECT_THAT(odd_in(campaign, done(put)), HasSubstr(count));
    EXPECT_THAT(odd_in(campaign, done(put + "," + empty_range + "," + put)), HasSubstr(count));
    EXPECT_THAT(odd_in(campaign, done(put + "," + put)), HasSubstr("no response_range"));
    EXPECT_THAT(odd_in(campaign, done(empty_range + "," + put)), HasSubstr("no response_put"));
    EXPECT_THAT(odd_in(renew, done(put + "," + empty_range)), HasSubstr("no response_put"));
    EXPECT_THAT(odd_in(resign, done(put + "," + put)), HasSubstr("no response_delete_range"));
    EXPECT_THAT(odd_in(resign, done(put + ",7")), HasSubstr("no response_delete_range"));
    EXPECT_THAT(odd_in(renew, done(put + R"(,{"response_put":7})")), HasSubstr("no object"));
    EXPECT_THAT(odd_in(renew, done(put + R"(,{"response_put":{},"response_range":{}})")),
                HasSubstr("no response_put"));
    EXPECT_THAT(odd_in(renew, done(put + "," + replaced(put, "21", "22"))),
                HasSubstr("two revisions"));
    EXPECT_THAT(odd_in(renew, replaced(done(put + "," + put), "true", "\"true\"")),
                HasSubstr("neither true nor false"));
    EXPECT_THAT(odd_in(renew, R"({"succeeded":true,"responses":[]})"), HasSubstr("revision"));
}

TEST(answers, a_renewal) {
    const auto good = answer_to<coordination::renewed>(renew, done(put + "," + put));
    EXPECT_TRUE(good.done);
    EXPECT_EQ(good.at, revision{21});

    const auto bad = answer_to<coordination::renewed>(
        renew, not_done(range(entry(keys.active, to_text(reigning), "17", "21"))));
    EXPECT_FALSE(bad.done);
    ASSERT_TRUE(bad.active);
    EXPECT_EQ(bad.active->modified, revision{21});

    const auto another = answer_to<coordination::renewed>(
        renew, not_done(range(entry(keys.active, to_text(reigning), "20", "20"))));
    ASSERT_TRUE(another.active);
    EXPECT_EQ(another.active->created, revision{20});

    const auto gone = answer_to<coordination::renewed>(renew, not_done(empty_range));
    EXPECT_FALSE(gone.done);
    EXPECT_FALSE(gone.active);

    answer_to<coordination::renewed>(renew, replaced(not_done(empty_range), "\"responses\"",
                                                     "\"succeeded\":false,\"responses\""));
}

// Who has the key goes on from there, and puts its own value again.
TEST(answers, what_somebody_wrote_over_active_is_nothing_to_its_holder) {
    const std::string garbage = not_done(range(entry(keys.active, "garbage", "17", "21")));
    const auto renewed = answer_to<coordination::renewed>(renew, garbage);
    ASSERT_TRUE(renewed.active);
    EXPECT_EQ(renewed.active->created, revision{17});
    EXPECT_EQ(renewed.active->modified, revision{21});
    EXPECT_EQ(renewed.active->value.name, "what is there is no record of ours");
    EXPECT_EQ(answer_to<coordination::resigned>(resign, garbage).active, renewed.active);
    EXPECT_THAT(odd_in(campaign, garbage), HasSubstr("no record of ours"));
}

TEST(answers, a_renewal_without_a_state) {
    coordination::renew alone = renew;
    alone.state.reset();
    EXPECT_EQ(answer_to<coordination::renewed>(alone, done(put)).at, revision{21});
    EXPECT_THAT(odd_in(alone, done(put + "," + put)), HasSubstr("number of responses"));
    EXPECT_THAT(odd_in(renew, done(put)), HasSubstr("number of responses"));
}

TEST(answers, a_renewal_does_not_contradict_itself) {
    // `active` is as the condition wants it, and it is said to have failed.
    EXPECT_THAT(odd_in(renew, not_done(range(active))), HasSubstr("its condition holds"));
    EXPECT_THAT(odd_in(resign, not_done(range(active))), HasSubstr("its condition holds"));
    // It modified `active`, and the store is where it was, as after a restore from a backup.
    const auto later = [](std::int64_t known) {
        auto asked = renew;
        asked.known = {known};
        return asked;
    };
    EXPECT_THAT(odd_in(later(21), done(put + "," + put)), HasSubstr("went back"));
    EXPECT_THAT(odd_in(later(99), done(put + "," + put)), HasSubstr("went back"));
}

TEST(answers, a_resignation) {
    EXPECT_TRUE(answer_to<coordination::resigned>(resign, done(put + "," + deletion)).done);
    const auto gone = answer_to<coordination::resigned>(resign, not_done(empty_range));
    EXPECT_FALSE(gone.done);
    EXPECT_FALSE(gone.active);
    auto earlier = resign;
    earlier.known = {19};
    const auto later = answer_to<coordination::resigned>(earlier, not_done(range(active)));
    EXPECT_FALSE(later.done);
    ASSERT_TRUE(later.active);
    EXPECT_EQ(later.active->modified, revision{20});
}

TEST(answers, of_json_that_is_none) {
    const std::string good = done(put + "," + put);
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_NE(odd_in(renew, good.substr(0, size)), "");
    }
    for (const std::string& body :
         {std::string{"[]"}, std::string{"null"}, std::string{"\"\""}, std::string{"<html>"},
          good + good, good + "x", good + std::string(1, '\0') + "x",
          std::string(good).replace(2, 1, 1, '\xff'), std::string(100'000, '['),
          R"({"a":)" + std::string(13, '[') + std::string(13, ']') + "}"}) {
        EXPECT_THAT(odd_in(renew, body), HasSubstr("JSON"));
    }
    // Which of the two is meant, nobody can say.
    EXPECT_THAT(odd_in(renew, replaced(good, "\"succeeded\"", "\"succeeded\":false,\"succeeded\"")),
                HasSubstr("twice"));
    // The same name in two objects is none of that.
    answer_to<coordination::renewed>(renew, good + " \r\n");
}

failure failure_in(long status, const std::string& body) {
    const reading read = read_answer(renew, keys, {.status = status, .body = body});
    const failure same = read_failure({.status = status, .body = body});
    EXPECT_EQ(std::get<coordination::failed>(read.what).why, same.why);
    EXPECT_EQ(read.of_endpoint, same.of_endpoint);
    return same;
}

TEST(answers, an_error_of_etcd_in_each_spelling) {
    const std::string words = "etcdserver: permission denied";
    for (const std::string& body :
         {R"({"error":")" + words + R"(","message":")" + words + R"(","code":7})",  // to 3.5
          R"({"code":7, "message":")" + words + R"(", "details":[]})",              // from 3.6
          R"({"error":")" + words + R"(","code":"7"})",
          // In a stream.
          R"({"error":{"grpc_code":7,"http_code":403,"message":")" + words +
              R"(","http_status":"Forbidden"}})",
          R"({"error":{"code":7,"message":")" + words + R"(","details":[]}})"}) {
        const failure why = failure_in(403, body);
        EXPECT_EQ(why.why, words) << body;
        EXPECT_EQ(why.of_endpoint, verdict::keep) << body;
    }
    const reading in_stream = read_answer(
        keep, keys,
        {.status = 200, .body = R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})"});
    EXPECT_EQ(std::get<coordination::failed>(in_stream.what).why, "etcdserver: no leader");
    EXPECT_EQ(in_stream.of_endpoint, verdict::move_on);
}

TEST(answers, another_endpoint_is_asked_when_this_one_cannot) {
    const auto of_code = [](int code) {
        return failure_in(500, R"({"error":"x","code":)" + std::to_string(code) + "}").of_endpoint;
    };
    for (const int code : {3, 5, 7, 9, 11}) {
        EXPECT_EQ(of_code(code), verdict::keep) << code;
    }
    for (const int code : {0, 1, 2, 4, 8, 10, 12, 13, 14, 15, 17, -1}) {
        EXPECT_EQ(of_code(code), verdict::move_on) << code;
    }
    EXPECT_EQ(failure_in(404, "404 page not found\n").of_endpoint, verdict::move_on);
    EXPECT_EQ(failure_in(404, "404 page not found\n").why,
              "HTTP status 404, and not from a JSON gateway of etcd");
    EXPECT_EQ(failure_in(302, "").of_endpoint, verdict::move_on);
    EXPECT_EQ(failure_in(500, R"({"code":7})").of_endpoint, verdict::move_on);
    EXPECT_EQ(failure_in(500, R"({"error":7})").of_endpoint, verdict::move_on);
}

TEST(answers, a_token_that_is_no_good_any_more) {
    for (const char* const body :
         {R"({"error":"etcdserver: invalid auth token","code":16})",
          R"({"error":"etcdserver: user name is empty","code":3})",
          R"({"error":"etcdserver: revision of auth store is old","code":3})"}) {
        EXPECT_EQ(failure_in(400, body).of_endpoint, verdict::stale_token) << body;
    }
}

TEST(answers, a_reason_is_one_short_line) {
    EXPECT_EQ(failure_in(500, R"({"error":"two\nlines \u001b[31m \u00e4\u007f"})").why,
              "two?lines ?[31m ???");
    const std::string why = failure_in(500, json{{"error", std::string(1000, 'x')}}.dump()).why;
    EXPECT_LE(why.size(), why_bytes_max);
    EXPECT_TRUE(why.ends_with("x..."));
}

TEST(answers, a_token) {
    const auto good =
        read_token({.status = 200, .body = "{" + header + R"(,"token":"CaOEqhyKxoViNfpe.30"})"});
    EXPECT_EQ(good.token, "CaOEqhyKxoViNfpe.30");

    const auto refused = read_token(
        {.status = 400,
         .body =
             R"({"error":"etcdserver: authentication failed, invalid user ID or password","code":3})"});
    EXPECT_FALSE(refused.token);
    EXPECT_EQ(refused.why.why, "etcdserver: authentication failed, invalid user ID or password");
    EXPECT_EQ(refused.why.of_endpoint, verdict::keep);

    const auto off =
        read_token({.status = 412,
                    .body = R"({"error":"etcdserver: authentication is not enabled","code":9})"});
    EXPECT_EQ(off.token, "");
}

TEST(answers, a_token_can_be_sent_back) {
    for (const std::string& body :
         {std::string{"{}"}, std::string{R"({"token":""})"}, std::string{R"({"token":"a b"})"},
          std::string{R"({"token":"a\r\nX-Y: z"})"}, std::string{R"({"token":"ä"})"},
          std::string{R"({"token":7})"}, std::string{"{\"token\":\"a\x7f\"}"},
          std::string{"no JSON"}, json{{"token", std::string(8193, 'x')}}.dump()}) {
        const auto none = read_token({.status = 200, .body = body});
        EXPECT_FALSE(none.token) << body;
        EXPECT_THAT(none.why.why, HasSubstr("odd answer"));
        EXPECT_EQ(none.why.of_endpoint, verdict::move_on);
    }
    EXPECT_TRUE(
        read_token({.status = 200, .body = json{{"token", std::string(8192, 'x')}}.dump()}).token);
}

}  // namespace
}  // namespace monolock::etcd
