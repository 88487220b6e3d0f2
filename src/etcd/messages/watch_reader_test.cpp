#include "etcd/messages/watch_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {
namespace {

using namespace std::chrono_literals;
using coordination::active_deleted;
using coordination::active_put;
using coordination::watch_broken;
using coordination::watch_event;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using state = watch_reader::state;

const key_names keys{"/monolock/"};

// As etcd 3.4 writes them.
const std::string created =
    R"({"result":{"header":{"cluster_id":"3","member_id":"4","revision":"6","raft_term":"2"},"created":true}})"
    "\n";

std::string value(std::uint64_t sequence) {
    return to_base64(to_text(coordination::active_record{"a", 5s, sequence}));
}
std::string put(std::int64_t made, std::int64_t modified, std::uint64_t sequence) {
    return R"({"kv":{"key":")" + keys.active + R"(","create_revision":")" + std::to_string(made) +
           R"(","mod_revision":")" + std::to_string(modified) + R"(","version":"1","value":")" +
           value(sequence) + R"(","lease":"7"}})";
}
std::string deletion(std::int64_t at) {
    return R"({"type":"DELETE","kv":{"key":")" + keys.active + R"(","mod_revision":")" +
           std::to_string(at) + R"("}})";
}
std::string message(const std::string& events) {
    return R"({"result":{"header":{"revision":"6"},"events":[)" + events + "]}}\n";
}

// A watch and what it told, as a line of words.
struct watched {
    watch_reader reader{keys, {5}};
    std::vector<watch_event> events{};

    void take(std::string_view bytes) { reader.take(bytes, events); }

    [[nodiscard]] std::vector<std::string> told() const {
        std::vector<std::string> words;
        for (const watch_event& event : events) {
            words.push_back(std::visit(*this, event));
        }
        return words;
    }
    std::string operator()(const active_put& put) const {
        return "put " + std::to_string(put.entry.value.sequence) + " at " +
               std::to_string(put.entry.modified.value);
    }
    std::string operator()(const active_deleted& gone) const {
        return "deleted at " + std::to_string(gone.at.value);
    }
    std::string operator()(const watch_broken& broken) const { return broken.why; }
};

// How a watch that was established ends at that line.
std::string end_of(const std::string& line, verdict expected = verdict::move_on) {
    watched watch;
    watch.take(created + line + "\n" + message(put(5, 7, 9)));
    EXPECT_EQ(watch.reader.where(), state::broken) << line;
    EXPECT_EQ(watch.reader.of_endpoint(), expected) << line;
    EXPECT_EQ(watch.events.size(), 1U) << line;
    return watch.told().back();
}

TEST(watch_reader, tells_events_in_their_order) {
    watched watch;
    EXPECT_EQ(watch.reader.where(), state::opening);
    watch.take(created);
    EXPECT_EQ(watch.reader.where(), state::running);
    EXPECT_THAT(watch.events, testing::IsEmpty());
    watch.take(message(put(5, 5, 0) + "," + put(5, 6, 1) + "," + deletion(8)));
    watch.take(message(put(9, 9, 0)));
    EXPECT_THAT(watch.told(),
                ElementsAre("put 0 at 5", "put 1 at 6", "deleted at 8", "put 0 at 9"));
    const auto& first = std::get<active_put>(watch.events.front()).entry;
    EXPECT_EQ(first.created.value, 5);
    EXPECT_EQ(first.value.ttl, 5s);
}

TEST(watch_reader, takes_any_pieces) {
    const std::string whole = created + message(put(5, 5, 0)) + message(deletion(6)) +
                              R"({"result":{"canceled":true}})" + "\n";
    watched at_once;
    at_once.take(whole);
    ASSERT_EQ(at_once.events.size(), 3U);
    for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
        watched watch;
        watch.take(whole.substr(0, cut));
        watch.take(whole.substr(cut));
        EXPECT_EQ(watch.told(), at_once.told()) << cut;
    }
    watched by_byte;
    for (const char byte : whole) {
        by_byte.take({&byte, 1});
    }
    EXPECT_EQ(by_byte.told(), at_once.told());
}

TEST(watch_reader, a_message_may_say_nothing) {
    // As one that only shows that the watch lives.
    watched watch;
    watch.take(created + R"({"result":{"header":{"revision":"9"}}})" + "\n{}\n");
    EXPECT_EQ(watch.reader.where(), state::running);
    EXPECT_THAT(watch.events, testing::IsEmpty());
}

TEST(watch_reader, understands_types_by_name_and_number) {
    watched watch;
    const std::string rest = R"(,"kv":{"key":")" + keys.active + R"(","mod_revision":")";
    watch.take(message(R"({"type":"PUT",)" + put(5, 5, 0).substr(1)) +
               message(R"({"type":0,)" + put(5, 6, 1).substr(1)) +
               message(R"({"type":1)" + rest + R"(7"}})"));
    EXPECT_THAT(watch.told(), ElementsAre("put 0 at 5", "put 1 at 6", "deleted at 7"));
}

TEST(watch_reader, a_history_that_is_compacted_away) {
    EXPECT_THAT(end_of(R"({"result":{"canceled":true,"compact_revision":"12"}})", verdict::keep),
                HasSubstr("compacted its history up to revision 12"));
}

TEST(watch_reader, a_watch_that_etcd_cancels) {
    EXPECT_THAT(end_of(R"({"result":{"canceled":true}})"), HasSubstr("cancelled it: no reason"));
    EXPECT_THAT(
        end_of(
            R"({"result":{"watch_id":"-1","created":true,"canceled":true,"cancel_reason":"rpc error: code = PermissionDenied desc = etcdserver: permission denied"}})"),
        EndsWith("desc = etcdserver: permission denied"));
}

TEST(watch_reader, a_watch_that_wants_a_token) {
    for (const char* const reason :
         {"invalid auth token", "user name is empty", "revision of auth store is old"}) {
        EXPECT_THAT(end_of(R"({"result":{"watch_id":"-1","created":true,"canceled":true,)"
                           R"("cancel_reason":"rpc error: code = X desc = etcdserver: )" +
                               std::string{reason} + R"("}})",
                           verdict::stale_token),
                    EndsWith(reason));
    }
}

TEST(watch_reader, an_error_in_the_stream) {
    EXPECT_THAT(
        end_of(
            R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader","http_status":"Service Unavailable"}})"),
        EndsWith("etcdserver: no leader"));
    EXPECT_THAT(end_of(R"({"error":{"code":16,"message":"etcdserver: invalid auth token"}})",
                       verdict::stale_token),
                EndsWith("invalid auth token"));
    EXPECT_THAT(end_of(R"({"error":{}})"), HasSubstr("without a message"));
}

TEST(watch_reader, the_last_line_may_lack_its_newline) {
    const auto end_behind = [](const std::string& rest) {
        watched watch;
        watch.take(created + rest);
        watch.reader.end(watch.events);
        watch.reader.end(watch.events);
        EXPECT_EQ(watch.reader.where(), state::broken);
        return watch.told();
    };
    const std::string whole = message(deletion(7));
    EXPECT_THAT(end_behind(""), ElementsAre(EndsWith("its stream ended")));
    EXPECT_THAT(end_behind(whole.substr(0, whole.size() - 2)),
                ElementsAre(EndsWith("its stream ended")));
    EXPECT_THAT(end_behind(whole.substr(0, whole.size() - 1)),
                ElementsAre("deleted at 7", EndsWith("its stream ended")));
    EXPECT_THAT(end_behind(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})"),
                ElementsAre(EndsWith("etcdserver: no leader")));
}

TEST(watch_reader, an_odd_message_ends_it) {
    const std::string key = R"("key":")" + keys.active + "\"";
    for (const std::string& line :
         {std::string{}, std::string{"no JSON"}, std::string{"[]"}, std::string{R"({"result":7})"},
          std::string{R"({"result":{"created":"true"}})"},
          std::string{R"({"result":{"canceled":1}})"}, std::string{R"({"result":{"events":{}}})"},
          message("7"), message("{}"), message(R"({"kv":7})"), message(R"({"kv":{}})"),
          message(R"({"type":"NONE",)" + put(5, 5, 0).substr(1)),
          message(R"({"type":2,)" + put(5, 5, 0).substr(1)),
          message(R"({"type":"DELETE","kv":{)" + key + "}}"),
          message(R"({"type":"DELETE","kv":{)" + key + R"(,"mod_revision":"-7"}})"),
          message(R"({"type":"DELETE","kv":{)" + key +
                  R"(,"mod_revision":"9223372036854775807"}})"),
          message(R"({"type":"DELETE","kv":{"key":"c3RhdGU=","mod_revision":"7"}})"),
          message(R"({"kv":{)" + key + R"(,"create_revision":"5","mod_revision":"5"}})")}) {
        EXPECT_THAT(end_of(line), HasSubstr("an odd message")) << line;
    }
}

TEST(watch_reader, events_do_not_go_back) {
    // From before the watch; one that was told already; one before one that was told.
    EXPECT_THAT(end_of(message(deletion(3))), HasSubstr("older"));
    watched again;
    again.take(message(put(5, 6, 1)) + message(put(5, 6, 1)));
    EXPECT_THAT(again.told(), ElementsAre("put 1 at 6", HasSubstr("older")));
    watched back;
    back.take(message(put(5, 6, 1) + "," + put(5, 5, 0)));
    EXPECT_THAT(back.told(), ElementsAre("put 1 at 6", HasSubstr("older")));
}

TEST(watch_reader, passes_over_the_revision_before_the_first) {
    watched watch;
    watch.take(created + message(deletion(4) + "," + put(5, 5, 0)));
    EXPECT_THAT(watch.told(), ElementsAre("put 0 at 5"));
    // Once.
    watched twice;
    twice.take(created + message(deletion(4)) + message(deletion(4)));
    EXPECT_THAT(twice.told(), ElementsAre(HasSubstr("older")));
}

TEST(watch_reader, a_message_has_its_bound) {
    watched watch;
    watch.take(created);
    watch.take(std::string(answer_bytes_max, ' '));
    EXPECT_EQ(watch.reader.where(), state::running);
    watch.take(" ");
    EXPECT_THAT(watch.told(), ElementsAre(HasSubstr("too long")));

    watched short_ones;
    for (int count = 0; count < 3; ++count) {
        short_ones.take(std::string(answer_bytes_max - 2, ' ') + "{}\n");
    }
    EXPECT_EQ(short_ones.reader.where(), state::opening);
}

TEST(watch_reader, breaks_off_once) {
    watched watch;
    watch.take(created + R"({"result":)");
    watch.reader.break_off("its stream ended", watch.events);
    watch.reader.break_off("it is silent", watch.events);
    watch.take("{}}\n" + message(put(5, 5, 0)));
    EXPECT_THAT(watch.told(), ElementsAre("the watch broke off: its stream ended"));
    EXPECT_EQ(watch.reader.of_endpoint(), verdict::move_on);
}

}  // namespace
}  // namespace monolock::etcd
