#include "server/audit_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

namespace monolock::server {
namespace {

// What became of a sink, kept after the writer has left it.
struct content {
    std::string text;
    std::vector<std::string> writes;
};

// Takes what it is told to take.
class scripted_sink final : public audit_sink {
public:
    struct script {
        std::deque<outcome> outcomes;  // of each write in turn; after them everything is taken
        std::size_t write_bytes_max = 1U << 16U;
        bool takes_back = true;
        bool ends_within_line = false;
    };

    scripted_sink(content& into, script what) : into_{&into}, script_{std::move(what)} {}

    outcome write(std::string_view text) noexcept override {
        outcome did{.written = text.size(), .error = 0};
        if (!script_.outcomes.empty()) {
            did = script_.outcomes.front();
            did.written = std::min(did.written, text.size());
            script_.outcomes.pop_front();
        }
        into_->text += text.substr(0, did.written);
        if (did.error == 0) {
            into_->writes.emplace_back(text.substr(0, did.written));
        }
        return did;
    }
    [[nodiscard]] std::size_t write_bytes_max() const noexcept override {
        return script_.write_bytes_max;
    }
    bool take_back(std::size_t count) noexcept override {
        if (script_.takes_back) {
            into_->text.resize(into_->text.size() - count);
        }
        return script_.takes_back;
    }
    [[nodiscard]] bool ends_within_line() const noexcept override {
        return script_.ends_within_line;
    }
    void wait(std::chrono::milliseconds /*time_max*/) noexcept override {}

private:
    content* into_;
    script script_;
};

std::unique_ptr<audit_sink> sink(content& into, scripted_sink::script what = {}) {
    return std::make_unique<scripted_sink>(into, std::move(what));
}

audit_batch batch_of(const std::vector<std::string>& names) {
    audit_batch batch{std::size_t{1} << 16U};
    for (const std::string& name : names) {
        batch.add({.what = audit_entry::kind::denied, .lock = name});
    }
    return batch;
}

std::string line(std::string_view name) {
    std::string out;
    append_line(out, {.what = audit_entry::kind::denied, .lock = name});
    return out;
}

TEST(audit_writer, lines_in_order_in_one_write) {
    content got;
    audit_writer writer{sink(got)};
    EXPECT_TRUE(writer.idle());
    writer.add(batch_of({"a", "b"}));
    EXPECT_FALSE(writer.idle());
    EXPECT_EQ(writer.lines_left(), 2U);
    EXPECT_EQ(writer.write(), 0);
    EXPECT_TRUE(writer.idle());
    EXPECT_EQ(got.writes, (std::vector{line("a") + line("b")}));
    writer.add(batch_of({"c"}));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.text, line("a") + line("b") + line("c"));
}

TEST(audit_writer, a_write_that_takes_a_part_is_completed) {
    for (std::size_t part = 1; part <= line("a").size() + line("b").size(); ++part) {
        content got;
        audit_writer writer{sink(got, {.outcomes = {{.written = part}, {.written = 1}}})};
        writer.add(batch_of({"a", "b"}));
        EXPECT_EQ(writer.write(), 0);
        EXPECT_EQ(got.text, line("a") + line("b"));
    }
}

TEST(audit_writer, a_refusal_leaves_no_half_line_and_loses_nothing) {
    for (std::size_t part = 0; part <= line("a").size() + 1; ++part) {
        content got;
        audit_writer writer{sink(got, {.outcomes = {{.written = part}, {.error = ENOSPC}}})};
        writer.add(batch_of({"a", "b"}));
        EXPECT_EQ(writer.write(), ENOSPC);
        EXPECT_EQ(got.text, part >= line("a").size() ? line("a") : "");
        EXPECT_EQ(writer.lines_left(), part >= line("a").size() ? 1U : 2U);
        EXPECT_EQ(writer.write(), 0);
        EXPECT_EQ(got.text, line("a") + line("b"));
    }
}

TEST(audit_writer, where_nothing_can_be_taken_back_the_rest_follows_first) {
    content got;
    audit_writer writer{
        sink(got, {.outcomes = {{.written = 5}, {.error = EIO}, {.error = EIO}, {.written = 3}},
                   .takes_back = false})};
    writer.add(batch_of({"a", "b"}));
    EXPECT_EQ(writer.write(), EIO);
    EXPECT_EQ(got.text, line("a").substr(0, 5));
    EXPECT_EQ(writer.write(), EIO);
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.text, line("a") + line("b"));
}

TEST(audit_writer, pieces_are_whole_lines_as_far_as_the_sink_takes_them_whole) {
    const std::size_t each = line("a").size();
    content got;
    audit_writer writer{sink(got, {.outcomes = {}, .write_bytes_max = 2 * each + 1})};
    writer.add(batch_of({"a", "b", "c", "d", "e"}));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.writes, (std::vector{line("a") + line("b"), line("c") + line("d"), line("e")}));
}

TEST(audit_writer, a_line_that_is_longer_goes_alone) {
    const std::string name(255, 'x');
    content got;
    audit_writer writer{sink(got, {.outcomes = {}, .write_bytes_max = line("a").size()})};
    writer.add(batch_of({"a", name, "b"}));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.writes, (std::vector{line("a"), line(name), line("b")}));
}

TEST(audit_writer, goes_on_in_another_sink_with_each_line_in_one_of_them) {
    content first;
    content second;
    audit_writer writer{
        sink(first, {.outcomes = {{.written = line("a").size() + 3}, {.error = ENOSPC}}})};
    writer.add(batch_of({"a", "b", "c"}));
    EXPECT_EQ(writer.write(), ENOSPC);
    writer.switch_to(sink(second));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(first.text, line("a"));
    EXPECT_EQ(second.text, line("b") + line("c"));
}

TEST(audit_writer, a_line_stuck_in_the_old_sink_is_whole_in_the_new_one) {
    content first;
    content second;
    audit_writer writer{
        sink(first, {.outcomes = {{.written = 7}, {.error = ENOSPC}}, .takes_back = false})};
    writer.add(batch_of({"a", "b"}));
    EXPECT_EQ(writer.write(), ENOSPC);
    writer.switch_to(sink(second));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(first.text, line("a").substr(0, 7));
    EXPECT_EQ(second.text, line("a") + line("b"));
}

TEST(audit_writer, begins_on_a_line_of_its_own) {
    content got{.text = "{\"time\":\"20", .writes = {}};
    audit_writer writer{sink(got, {.outcomes = {{.error = ENOSPC}}, .ends_within_line = true})};
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.text, "{\"time\":\"20") << "nothing to say yet";
    writer.add(batch_of({"a"}));
    EXPECT_EQ(writer.write(), ENOSPC);
    EXPECT_EQ(writer.write(), 0);
    writer.add(batch_of({"b"}));
    EXPECT_EQ(writer.write(), 0);
    EXPECT_EQ(got.text, "{\"time\":\"20\n" + line("a") + line("b"));
}

TEST(audit_writer, lines_of_each_kind) {
    audit_batch batch{4096};
    const audit_entry about{.time = {},
                            .number = 7,
                            .span = std::chrono::milliseconds{5},
                            .lock = "l",
                            .identity = "i"};
    for (const auto kind : {audit_entry::kind::granted, audit_entry::kind::released,
                            audit_entry::kind::denied, audit_entry::kind::force_release,
                            audit_entry::kind::kick_waiter, audit_entry::kind::gap}) {
        audit_entry entry = about;
        entry.what = kind;
        entry.reason = core::end_reason::force;
        batch.add(entry);
    }
    content got;
    audit_writer writer{sink(got)};
    writer.add(batch);
    EXPECT_EQ(writer.write(), 0);
    const std::string time = R"({"time":"1970-01-01T00:00:00.000Z","event":")";
    const std::string who = R"(","lock":"l","identity":"i","remote_addr":"unknown")";
    EXPECT_EQ(got.text, time + "granted" + who + ",\"token\":7,\"wait_ms\":5}\n" + time +
                            "released" + who +
                            ",\"token\":7,\"held_ms\":5,\"reason\":\"force\"}\n" + time + "denied" +
                            who + "}\n" + time + "force_release" + who + ",\"token\":7}\n" + time +
                            "kick_waiter" + who + "}\n" + time + "audit_gap\",\"lost\":7}\n");
}

}  // namespace
}  // namespace monolock::server
