#include "telemetry/audit_verifier.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "telemetry/line_splitter.hpp"

namespace monolock::telemetry {
namespace {

using namespace std::chrono_literals;

constexpr wall_time noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} + 12h};

std::string line_of(const auto& what) {
    std::string out;
    append_audit_line(out, what);
    out.pop_back();
    return out;
}

std::string of(std::string_view lock, audit_event event, std::string_view from = "a:1") {
    return line_of(audit_record{
        .time = noon, .lock = lock, .identity = {}, .remote_addr = from, .event = event});
}
std::string granted(std::string_view lock, std::uint64_t token, std::string_view from = "a:1") {
    return of(lock, audit_granted{.token = {token}, .wait = 0ms}, from);
}
std::string released(std::string_view lock, std::uint64_t token, std::string_view why = "graceful",
                     std::string_view from = "a:1") {
    return of(lock, audit_released{.token = {token}, .held = 0ms, .reason = why}, from);
}
std::string forced(std::string_view lock, std::uint64_t token) {
    return of(lock, audit_force_release{.token = {token}});
}
std::string gap(std::uint64_t lost) {
    return line_of(audit_gap{.time = noon, .lost = lost});
}

using lines = std::vector<std::string>;

// "3: why", or "" for a log that is proven.
std::string broken(const lines& log, audit_verifier::allowances allowed = {}) {
    audit_verifier verifier{allowed};
    verifier.begin_file("log");
    for (const std::string& line : log) {
        if (const auto wrong = verifier.take(line)) {
            return std::to_string(wrong->where.line) + ": " + wrong->why;
        }
    }
    return "";
}

audit_verifier::summary summary_of(const lines& log, audit_verifier::allowances allowed = {}) {
    audit_verifier verifier{allowed};
    verifier.begin_file("log");
    for (const std::string& line : log) {
        const auto wrong = verifier.take(line);
        EXPECT_FALSE(wrong) << wrong->why;
    }
    return verifier.result();
}

constexpr audit_verifier::allowances continued{.continued = true, .crashes = false};
constexpr audit_verifier::allowances crashes{.continued = false, .crashes = true};

TEST(audit_verifier, a_log_as_it_should_be) {
    const lines log{granted("a", 1),  granted("b", 2, "b:2"),    of("a", audit_denied{}, "c:3"),
                    released("a", 1), granted("a", 3),           of("a", audit_kick_waiter{}),
                    forced("a", 3),   released("a", 3, "force"), granted("a", 5)};
    const auto found = summary_of(log);
    EXPECT_EQ(found.lines, 9U);
    EXPECT_EQ(found.grants, 4U);
    EXPECT_EQ(found.ends, 2U);
    EXPECT_EQ(found.denied, 1U);
    EXPECT_EQ(found.kicked, 1U);
    EXPECT_EQ(found.forced, 1U);
    EXPECT_EQ(found.held, 2U);
    EXPECT_EQ(found.lost, 0U);
}

TEST(audit_verifier, two_owners) {
    EXPECT_EQ(
        broken({granted("a", 1), granted("a", 2)}),
        "2: lock \"a\" is granted with token 2, but the grant of token 1 at log:1 has no end");
}

TEST(audit_verifier, an_end_without_its_grant) {
    EXPECT_EQ(broken({released("a", 1)}),
              "1: lock \"a\" is released with token 1, which was not granted");
    EXPECT_EQ(
        broken({granted("a", 1), released("a", 2)}),
        "2: lock \"a\" is released with token 2, but its owner has the grant of token 1 at log:1");
    EXPECT_EQ(broken({granted("a", 1), released("a", 1), released("a", 1)}),
              "3: lock \"a\" is released with token 1 a second time; the grant of token 1 at log:1 "
              "has its end");
    EXPECT_EQ(broken({granted("a", 1), released("b", 1)}),
              "2: lock \"b\" is released with token 1, which was not granted");
}

TEST(audit_verifier, an_end_of_another_session) {
    EXPECT_EQ(broken({granted("a", 1, "a:1"), released("a", 1, "graceful", "b:2")}),
              "2: the end is told of another session than the grant of token 1 at log:1");
}

TEST(audit_verifier, tokens_that_do_not_rise) {
    EXPECT_EQ(broken({granted("a", 5), released("a", 5), granted("a", 4)}),
              "3: token 4 does not rise: the grant of token 5 at log:1 came before");
    EXPECT_EQ(broken({granted("a", 5), released("a", 5), granted("a", 5)}),
              "3: token 5 does not rise: the grant of token 5 at log:1 came before");
    EXPECT_EQ(broken({granted("a", 5), granted("b", 5)}), "2: token 5 is given twice");
    EXPECT_EQ(broken({granted("a", 0)}), "1: zero is never a token");
    EXPECT_EQ(broken({granted("a", 5), granted("b", 4)}), "") << "of another thread, a moment late";
}

TEST(audit_verifier, a_token_that_is_later_than_any_thread) {
    audit_verifier verifier{{}};
    verifier.begin_file("log");
    ASSERT_FALSE(verifier.take(granted("first", 10)));
    ASSERT_FALSE(verifier.take(released("first", 10)));
    for (std::uint64_t token = 100; token < 100 + audit_verifier::reorder_max; ++token) {
        ASSERT_FALSE(verifier.take(granted("a", token)));
        ASSERT_FALSE(verifier.take(released("a", token)));
    }
    const auto wrong = verifier.take(granted("first", 9));
    ASSERT_TRUE(wrong);
    EXPECT_EQ(wrong->why, "token 9 does not rise: larger ones came long before");
}

TEST(audit_verifier, force) {
    EXPECT_EQ(broken({granted("a", 1), released("a", 1, "force")}),
              "2: ended by force, but no force_release stands before it");
    EXPECT_EQ(broken({granted("a", 1), forced("a", 1), released("a", 1, "expired")}),
              "3: an operator ended the grant of token 1 at log:1, yet its end has another reason");
    EXPECT_EQ(broken({granted("a", 1), forced("a", 2)}), "2: no owner of lock \"a\" has token 2");
    EXPECT_EQ(broken({forced("a", 2)}), "1: no owner of lock \"a\" has token 2");
    EXPECT_EQ(broken({granted("a", 1), released("a", 1), forced("a", 1)}),
              "3: no owner of lock \"a\" has token 1");
    EXPECT_EQ(broken({granted("a", 1, "b:2"), forced("a", 1)}),
              "2: it is told of another session than the grant of token 1 at log:1");
}

TEST(audit_verifier, what_is_no_record) {
    EXPECT_EQ(broken({granted("a", 1), ""}),
              "2: no record of the audit log: expected \"time\" at column 1");
    EXPECT_EQ(broken({gap(0)}), "1: a gap in which nothing was lost");
}

TEST(audit_verifier, a_file_that_ends_within_a_line) {
    audit_verifier verifier{{}};
    verifier.begin_file("log");
    EXPECT_FALSE(verifier.take(granted("a", 1)));
    EXPECT_FALSE(verifier.end_file(""));
    verifier.begin_file("next");
    EXPECT_FALSE(verifier.take(released("a", 1)));
    const auto wrong = verifier.end_file("{\"ti");
    ASSERT_TRUE(wrong);
    EXPECT_EQ(verifier.text_of(wrong->where), "next:2");
    EXPECT_EQ(wrong->why, "the file ends within the line");
}

TEST(audit_verifier, files_in_the_wrong_order) {
    audit_verifier verifier{{}};
    verifier.begin_file("new");
    EXPECT_FALSE(verifier.take(granted("a", 2)));
    EXPECT_FALSE(verifier.take(released("a", 2)));
    verifier.begin_file("old");
    const auto wrong = verifier.take(granted("a", 1));
    ASSERT_TRUE(wrong);
    EXPECT_EQ(
        wrong->why,
        "token 1 does not rise: the grant of token 2 at new:1 came before (are the files in order, "
        "oldest first?)");
}

TEST(audit_verifier, a_crash_may_end_a_file_within_a_line) {
    audit_verifier verifier{crashes};
    verifier.begin_file("log");
    EXPECT_FALSE(verifier.take(granted("a", 1)));
    EXPECT_FALSE(verifier.end_file("{\"ti"));
    EXPECT_EQ(verifier.result().broken_off, 1U);
    EXPECT_EQ(verifier.result().without_end, 1U);
}

// --- gaps

TEST(audit_verifier, a_gap_explains_what_is_missing_up_to_what_it_lost) {
    EXPECT_EQ(broken({granted("a", 1), gap(1), granted("a", 2)}), "") << "the end";
    EXPECT_EQ(broken({gap(1), released("a", 1)}), "") << "the grant";
    EXPECT_EQ(broken({granted("a", 1), gap(2), released("a", 2)}), "") << "an end and a grant";
    EXPECT_EQ(broken({granted("a", 1), gap(1), released("a", 2)}),
              "3: lock \"a\" is released with token 2, but its owner has the grant of token 1 at "
              "log:1, and the gaps "
              "before have lost only 1");
    EXPECT_EQ(broken({granted("a", 1), granted("b", 2), gap(1), granted("a", 3), granted("b", 4)}),
              "5: the grant of token 2 at log:2 has no end, and the gaps before have lost only 1");
    EXPECT_EQ(broken({granted("a", 1), gap(1), released("a", 1, "force")}), "");
    const auto found = summary_of({granted("a", 1), gap(5), granted("a", 2), gap(7)});
    EXPECT_EQ(found.gaps, 2U);
    EXPECT_EQ(found.lost, 12U);
    EXPECT_EQ(found.missing, 1U);
    ASSERT_EQ(found.first_gaps.size(), 2U);
    EXPECT_EQ(found.first_gaps[1].line, 4U);
}

TEST(audit_verifier, a_gap_may_have_lost_the_grant_that_was_ended_by_force) {
    EXPECT_EQ(broken({gap(1), forced("a", 1)}), "");
    EXPECT_EQ(broken({granted("a", 1), gap(2), forced("a", 2)}), "");
    EXPECT_EQ(broken({granted("a", 1), granted("b", 2), gap(1), granted("b", 3),
                      released("a", 1, "force")}),
              "5: ended by force, but no force_release stands before it, and the gaps before have "
              "lost only 1");
}

TEST(audit_verifier, of_very_many_gaps_the_first_are_shown_and_all_counted) {
    const auto found = summary_of(lines(13, gap(1)));
    EXPECT_EQ(found.gaps, 13U);
    EXPECT_EQ(found.lost, 13U);
    ASSERT_EQ(found.first_gaps.size(), 10U);
    EXPECT_EQ(found.first_gaps.back().line, 10U);
}

TEST(audit_verifier, a_gap_explains_nothing_that_came_after_it) {
    EXPECT_NE(broken({gap(9), granted("a", 1), granted("a", 2)}), "");
    EXPECT_NE(broken({gap(9), granted("a", 1), released("a", 2)}), "");
    EXPECT_NE(broken({gap(9), granted("a", 1), released("a", 1), released("a", 1)}), "");
    EXPECT_NE(broken({gap(9), granted("a", 1), released("a", 1, "force")}), "");
    EXPECT_NE(broken({gap(9), granted("a", 1), forced("a", 2)}), "");
}

TEST(audit_verifier, a_gap_excuses_no_token) {
    EXPECT_NE(broken({granted("a", 5), released("a", 5), gap(9), granted("a", 4)}), "");
    EXPECT_NE(broken({granted("a", 5), released("a", 5), gap(9), released("a", 5)}), "");
    EXPECT_NE(broken({granted("a", 5), released("a", 5), gap(9), released("a", 4)}), "");
    EXPECT_NE(broken({granted("a", 5), gap(9), released("b", 5)}), "");
    EXPECT_NE(broken({gap(9), released("a", 7), granted("b", 7)}), "");
}

// --- allowances

TEST(audit_verifier, a_log_that_continues_others) {
    const lines log{released("a", 1'000), released("b", 2'000), granted("a", 3'000),
                    released("a", 3'000)};
    EXPECT_NE(broken(log), "");
    EXPECT_EQ(broken(log, continued), "");
    EXPECT_EQ(summary_of(log, continued).ends_from_before, 2U);
    EXPECT_NE(broken({released("a", 1), released("a", 1)}, continued), "") << "not twice";
    EXPECT_EQ(broken({granted("b", 2'000), released("a", 1'000)}, continued), "")
        << "its grant is in an older file";
    EXPECT_NE(broken({granted("b", 2'000), released("a", 2'000)}, continued), "")
        << "that token is another lock's";
    EXPECT_EQ(broken({forced("a", 1'000), released("a", 1'000, "force")}, continued), "");
    EXPECT_NE(broken({granted("a", 5), released("a", 5), forced("a", 4)}, continued), "");
    EXPECT_NE(broken({granted("a", 5), released("a", 5), released("a", 4)}, continued), "");
    const std::uint64_t much_later = 5'000'000'000;
    EXPECT_NE(broken({granted("a", 5), released("b", much_later)}, continued), "")
        << "from before, and larger";
    EXPECT_NE(broken({granted("a", 5), granted("a", 6)}, continued), "")
        << "excuses no missing end";
}

TEST(audit_verifier, a_server_that_was_killed) {
    const lines log{granted("a", 1), granted("b", 2), granted("c", 3), granted("b", 4),
                    released("c", 3)};
    EXPECT_NE(broken(log), "");
    EXPECT_EQ(broken(log, crashes), "")
        << "only what is older than the grant without an end must have died";
    EXPECT_EQ(summary_of(log, crashes).without_end, 2U);
    EXPECT_NE(
        broken({granted("a", 1), granted("b", 2), granted("b", 4), released("a", 1)}, crashes), "")
        << "ended by the crash, and again";
    EXPECT_NE(broken({released("a", 1)}, crashes), "") << "excuses no missing grant";
}

TEST(audit_verifier, a_line_that_a_crash_broke_off) {
    const lines log{granted("a", 1), granted("b", 2), "{\"time\":\"2026-03", granted("a", 3)};
    EXPECT_NE(broken(log), "");
    EXPECT_EQ(broken(log, crashes), "");
    EXPECT_EQ(summary_of(log, crashes).without_end, 2U);
    EXPECT_EQ(summary_of(log, crashes).broken_off, 1U);
    EXPECT_NE(broken({granted("a", 1), "{\"time\":\"2026-03", released("a", 1)}, crashes), "");
    EXPECT_NE(broken({"{}"}, crashes), "");
    EXPECT_NE(broken({""}, crashes), "");
}

TEST(audit_verifier, a_log_that_a_crash_cut_off_anywhere) {
    std::string log;
    for (const std::string& line :
         {granted("}\"\n{\xC3\xBC\xE2\x80\xA8}", 1), forced("}\"\n{\xC3\xBC\xE2\x80\xA8}", 1),
          released("}\"\n{\xC3\xBC\xE2\x80\xA8}", 1, "force"), gap(3), of("a", audit_denied{}),
          of("}", audit_kick_waiter{}), granted("a", 2), released("a", 2)}) {
        log += line + "\n";
    }
    for (std::size_t size = 0; size <= log.size(); ++size) {
        audit_verifier verifier{crashes};
        verifier.begin_file("log");
        std::string_view rest = std::string_view{log}.substr(0, size);
        for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
            ASSERT_FALSE(verifier.take(rest.substr(0, end)));
            rest.remove_prefix(end + 1);
        }
        const auto wrong = verifier.end_file(rest);
        EXPECT_FALSE(wrong) << rest << ": " << wrong->why;
    }
}

TEST(audit_verifier, a_record_without_its_newline_counts) {
    audit_verifier verifier{crashes};
    verifier.begin_file("log");
    ASSERT_FALSE(verifier.end_file(granted("a", 1)));
    EXPECT_EQ(verifier.result().held, 1U);
    EXPECT_EQ(verifier.result().lines, 1U);
    EXPECT_EQ(verifier.result().broken_off, 0U);
    verifier.begin_file("next");
    EXPECT_FALSE(verifier.take(released("a", 1)));
}

TEST(audit_verifier, a_record_without_its_newline_is_broken_where_nothing_crashed) {
    audit_verifier verifier{{}};
    verifier.begin_file("log");
    EXPECT_TRUE(verifier.end_file(granted("a", 1)));
}

TEST(audit_verifier, forgets_a_lock_that_died_in_a_crash) {
    audit_verifier verifier{crashes};
    verifier.begin_file("log");
    ASSERT_FALSE(verifier.take(granted("dies", 1)));
    for (std::uint64_t token = 2; token < audit_verifier::reorder_max + 10; ++token) {
        ASSERT_FALSE(verifier.take(granted("a", token)));
        ASSERT_FALSE(verifier.take(released("a", token)));
    }
    EXPECT_FALSE(verifier.take(granted("dies", audit_verifier::reorder_max + 10)));
    EXPECT_EQ(verifier.result().without_end, 1U);
}

// --- every mutation is found

struct random_log {
    std::mt19937_64 random;
    lines log;
    std::vector<std::string> locks;  // of each line

    explicit random_log(std::uint64_t seed) : random{seed} {
        std::vector<std::uint64_t> owner(4);
        std::uint64_t token = 1'000'000;
        for (int step = 0; step < 60; ++step) {
            const std::size_t which = random() % owner.size();
            const std::string lock = "lock-" + std::to_string(which);
            const std::string from =
                "10.0.0.1:" + std::to_string(owner[which] == 0 ? token + 1 : owner[which]);
            if (owner[which] == 0) {
                owner[which] = ++token;
                log.push_back(granted(lock, token, from));
            } else {
                log.push_back(released(lock, owner[which], "graceful", from));
                owner[which] = 0;
            }
            locks.push_back(lock);
        }
    }
};

TEST(audit_verifier, every_mutation_of_a_proven_log_is_found) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const random_log made{seed};
        ASSERT_EQ(broken(made.log), "");
        for (std::size_t at = 0; at < made.log.size(); ++at) {
            lines twice = made.log;
            twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(at), made.log[at]);
            EXPECT_NE(broken(twice), "") << "line " << at << " twice";

            lines other_lock = made.log;
            const auto name = other_lock[at].find("lock-");
            other_lock[at].replace(name, 6, "lock-9");
            const bool last_of_lock =
                std::find(made.locks.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                          made.locks.end(), made.locks[at]) == made.locks.end();
            const bool is_grant = made.log[at].find("granted") != std::string::npos;
            // A grant that is still held at the end may be of any lock, and need not be there.
            if (!(last_of_lock && is_grant)) {
                EXPECT_NE(broken(other_lock), "") << "line " << at << " of another lock";
            }
            lines without = made.log;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
            if (!last_of_lock) {
                EXPECT_NE(broken(without), "") << "line " << at << " missing";
            }
            // With the next line of the same lock.
            const auto next = std::find(made.locks.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                        made.locks.end(), made.locks[at]);
            if (next != made.locks.end()) {
                lines swapped = made.log;
                std::swap(swapped[at],
                          swapped[static_cast<std::size_t>(next - made.locks.begin())]);
                EXPECT_NE(broken(swapped), "") << "line " << at << " swapped";
            }
            lines cut = made.log;
            cut[at].resize(cut[at].size() / 2);
            EXPECT_NE(broken(cut), "") << "line " << at << " cut";
        }
    }
}

// --- the splitter

TEST(line_splitter, the_same_lines_however_the_stream_is_cut) {
    const std::string text = "one\n\nthree\nfour and a rest";
    for (std::size_t size = 1; size <= text.size(); ++size) {
        line_splitter splitter;
        lines seen;
        for (std::size_t at = 0; at < text.size(); at += size) {
            EXPECT_TRUE(
                splitter.feed(std::string_view{text}.substr(at, size), [&](std::string_view line) {
                    seen.emplace_back(line);
                    return true;
                }));
        }
        EXPECT_EQ(seen, (lines{"one", "", "three"}));
        EXPECT_EQ(splitter.rest(), "four and a rest");
    }
}

TEST(line_splitter, forgets_half_a_line_when_told_to) {
    line_splitter splitter;
    lines seen;
    const auto see = [&](std::string_view line) {
        seen.emplace_back(line);
        return true;
    };
    splitter.feed("half of a li", see);
    splitter.drop_rest();
    EXPECT_EQ(splitter.rest(), "");
    splitter.feed("whole\n", see);
    EXPECT_EQ(seen, lines{"whole"});
}

TEST(line_splitter, stops_when_told_to) {
    line_splitter splitter;
    int seen = 0;
    EXPECT_FALSE(splitter.feed("a\nb\nc\n", [&](std::string_view) { return ++seen < 2; }));
    EXPECT_EQ(seen, 2);
}

TEST(line_splitter, a_line_without_end_comes_in_pieces) {
    line_splitter splitter;
    std::size_t seen = 0;
    const std::string piece(1 << 16, 'x');
    for (int count = 0; count < 40; ++count) {
        splitter.feed(piece, [&](std::string_view line) {
            seen += line.size();
            return true;
        });
        EXPECT_LT(splitter.rest().size(), line_splitter::line_bytes_max);
    }
    EXPECT_EQ(seen + splitter.rest().size(), 40U << 16U);
}

}  // namespace
}  // namespace monolock::telemetry
