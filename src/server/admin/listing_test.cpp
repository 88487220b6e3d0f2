#include "server/admin/listing.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace monolock::server::admin {
namespace {

using namespace std::chrono_literals;

constexpr core::time_point start{100h};

lock_view lock(std::string name, core::time_point taken_at = start) {
    lock_view made;
    made.name = std::move(name);
    made.taken_at = taken_at;
    return made;
}

std::shared_ptr<const listing> listing_of(std::vector<lock_view> found, std::uint64_t id = 1,
                                          std::optional<std::string> match = {},
                                          core::time_point taken = start) {
    return make_listing(id, std::move(match), {.steady = taken, .wall = {}}, std::move(found));
}

std::vector<std::string> names_of(const listing& of) {
    std::vector<std::string> names;
    for (const lock_view& each : of.locks) {
        names.push_back(each.name);
    }
    return names;
}

std::string text_of(listing_pages pages, int& pieces) {
    std::string all;
    pieces = 0;
    while (const auto piece = pages.piece()) {
        EXPECT_FALSE(piece->empty());
        all += *piece;
        ++pieces;
    }
    return all;
}

TEST(listing, is_sorted_by_bytes_and_knows_each_name_once) {
    const auto made =
        listing_of({lock("b"), lock("\xC3\xBC"), lock("B"), lock("b", start + 1s), lock("a")});
    EXPECT_EQ(names_of(*made), (std::vector<std::string>{"B", "a", "b", "\xC3\xBC"}));
    EXPECT_EQ(made->locks[2].taken_at, start + 1s) << "as it was last seen";
}

TEST(listing, finds_what_comes_behind_a_name_that_may_be_gone) {
    const auto made = listing_of({lock("a"), lock("c"), lock("e")});
    EXPECT_EQ(made->behind(""), 0U);
    EXPECT_EQ(made->behind("a"), 1U);
    EXPECT_EQ(made->behind("b"), 1U);
    EXPECT_EQ(made->behind("e"), 3U);
    EXPECT_EQ(made->behind("f"), 3U);
}

TEST(listing_pages, are_one_document_in_whatever_pieces) {
    for (const int count : {0, 1, 2, 5'000}) {
        std::vector<lock_view> found;
        for (int index = 0; index < count; ++index) {
            found.push_back(lock("lock-\"" + std::to_string(index)));
        }
        const auto made = listing_of(std::move(found));
        int pieces = 0;
        const auto json =
            nlohmann::json::parse(text_of(listing_pages{made, page_of(*made, {})}, pieces));
        EXPECT_EQ(json.size(), 1U);
        ASSERT_EQ(json["locks"].size(), static_cast<std::size_t>(count));
        for (std::size_t index = 0; index < made->locks.size(); ++index) {
            EXPECT_EQ(json["locks"][index]["name"], made->locks[index].name);
        }
        EXPECT_EQ(pieces > 1, count == 5'000);
    }
}

TEST(listing_pages, each_shows_what_is_behind_the_one_before) {
    const auto made = listing_of({lock("a"), lock("b/c"), lock("d"), lock("e")}, 7, "*");
    const auto range = [](const listing_page& page) { return std::pair{page.begin, page.end}; };
    const auto first = page_of(*made, {.match = "*", .limit = 2, .after = {}, .snapshot = {}});
    EXPECT_EQ(range(first), (std::pair<std::size_t, std::size_t>{0, 2}));
    EXPECT_EQ(first.next, "/api/locks?limit=2&snapshot=7&after=b%2Fc&match=%2A");
    const auto last = page_of(*made, {.match = "*", .limit = 2, .after = "b/c", .snapshot = 7});
    EXPECT_EQ(range(last), (std::pair<std::size_t, std::size_t>{2, 4}));
    EXPECT_EQ(last.next, "");
    const auto none = page_of(*made, {.match = "*", .limit = 2, .after = "e", .snapshot = 7});
    EXPECT_EQ(range(none), (std::pair<std::size_t, std::size_t>{4, 4}));
    EXPECT_EQ(none.next, "");
    EXPECT_EQ(range(page_of(*made, {.match = {}, .limit = {}, .after = "a", .snapshot = {}})),
              (std::pair<std::size_t, std::size_t>{1, 4}));
}

TEST(listing_pages, a_page_says_where_the_next_one_is) {
    const auto made = listing_of({lock("a"), lock("b"), lock("c")});
    int pieces = 0;
    const auto json = nlohmann::json::parse(
        text_of(listing_pages{made, {.begin = 1, .end = 2, .next = "/api/locks?after=b"}}, pieces));
    EXPECT_EQ(json["locks"].size(), 1U);
    EXPECT_EQ(json["locks"][0]["name"], "b");
    EXPECT_EQ(json["next"], "/api/locks?after=b");
}

// An owner since then, and so many waiters.
lock_view claimed(std::string name, core::nanoseconds since, std::size_t waiters) {
    lock_view made = lock(std::move(name));
    made.holder = claim_view{};
    made.holder->since = start - since;
    made.waiters_total = waiters;
    return made;
}

std::vector<std::string> shown(listing_order sort, std::size_t from, std::size_t limit) {
    const auto made =
        make_window({.match = {}, .sort = sort, .from = from, .limit = limit, .waiters_max = 0},
                    {.steady = start, .wall = {}},
                    {claimed("c", 1s, 5), claimed("a", 3s, 0), lock("e"), claimed("b", 2s, 5),
                     claimed("d", 3s, 7), claimed("d", 3s, 7)});
    EXPECT_EQ(made.total, 5U);
    return names_of(*made.shown);
}

TEST(listing_window, is_sorted_as_asked_and_by_name_where_that_leaves_it_open) {
    using names = std::vector<std::string>;
    EXPECT_EQ(shown(listing_order::name, 0, 9), (names{"a", "b", "c", "d", "e"}));
    EXPECT_EQ(shown(listing_order::waiters, 0, 9), (names{"d", "b", "c", "a", "e"}));
    EXPECT_EQ(shown(listing_order::held, 0, 9), (names{"a", "d", "b", "c", "e"}));
    EXPECT_EQ(shown(listing_order::waiters, 1, 2), (names{"b", "c"}));
    EXPECT_EQ(shown(listing_order::held, 3, 2), (names{"c", "e"}));
    EXPECT_EQ(shown(listing_order::name, 4, 9), (names{"e"}));
    EXPECT_EQ(shown(listing_order::waiters, 5, 9), names{});
    EXPECT_EQ(shown(listing_order::name, SIZE_MAX, SIZE_MAX), names{});
}

TEST(listing_window, says_how_many_there_are) {
    int pieces = 0;
    const auto made =
        make_window({.match = {}, .sort = {}, .from = 1, .limit = 1, .waiters_max = 0},
                    {.steady = start, .wall = {}}, {lock("a"), lock("b"), lock("c")});
    const auto json = nlohmann::json::parse(text_of(listing_pages{made}, pieces));
    EXPECT_EQ(json["total"], 3);
    EXPECT_EQ(json["locks"].size(), 1U);
    EXPECT_EQ(json["locks"][0]["name"], "b");
    EXPECT_EQ(json.size(), 2U);
}

// A listing of so many claims, of a second of its own.
std::shared_ptr<const listing> kept_one(std::uint64_t id, std::size_t claims,
                                        std::optional<std::string> match = "m") {
    std::vector<lock_view> found{lock("a")};
    found.front().waiters.resize(claims - 1);
    return listing_of(std::move(found), id, std::move(match), start + 2s * id);
}

TEST(kept_listings, are_kept_for_a_while) {
    kept_listings kept;
    for (std::uint64_t id = 1; id <= 9; ++id) {
        EXPECT_EQ(kept.keep(kept_one(id, 1))->id, id);
    }
    EXPECT_EQ(kept.find(1, start + 10s)->id, 1U) << "whatever others ask for";
    EXPECT_EQ(kept.find("m", start + 10s)->id, 9U) << "the newest";
    EXPECT_EQ(kept.find(std::nullopt, start + 10s), nullptr) << "of another match";
    EXPECT_EQ(kept.find(2, start + 4s + kept_listings::age_max + 1ns), nullptr);
    EXPECT_NE(kept.find(3, start + 4s + kept_listings::age_max + 1ns), nullptr);
    kept.forget_old(start + 1h);
    EXPECT_TRUE(kept.empty());
}

TEST(kept_listings, within_a_bound_those_that_are_read_stay) {
    kept_listings kept{100};
    constexpr core::time_point now = start + 20s;
    for (std::uint64_t id = 1; id <= 10; ++id) {
        EXPECT_EQ(kept.keep(kept_one(id, 10))->id, id);
        EXPECT_NE(kept.find(1, now), nullptr);
    }
    EXPECT_EQ(kept.keep(kept_one(11, 20))->id, 11U);
    EXPECT_EQ(kept.find(2, now), nullptr) << "it made room";
    EXPECT_EQ(kept.find(3, now), nullptr) << "and so did this";
    EXPECT_NE(kept.find(1, now), nullptr) << "it is being read";
    EXPECT_NE(kept.find(4, now), nullptr);
    for (std::uint64_t id = 12; id <= 15; ++id) {
        EXPECT_EQ(kept.keep(kept_one(id, 1'000))->id, id);
    }
    EXPECT_EQ(kept.find(11, now), nullptr);
    EXPECT_NE(kept.find(12, now), nullptr) << "a few may be of any size";
}

TEST(kept_listings, where_there_is_no_room_a_recent_one_is_shared) {
    kept_listings kept{100};
    const auto taken = [](std::uint64_t id, core::time_point at, const char* match) {
        return listing_of(std::vector<lock_view>(1, lock("a")), id, match, at);
    };
    for (std::uint64_t id = 1; id <= 4; ++id) {
        static_cast<void>(kept.keep(kept_one(id, 50)));
    }
    constexpr core::time_point last = start + 8s;
    EXPECT_EQ(kept.keep(taken(5, last + 1s, "m"))->id, 4U);
    EXPECT_EQ(kept.keep(taken(6, last + 1s, "other"))->id, 6U) << "of another match";
    EXPECT_EQ(kept.keep(taken(7, last + 1001ms, "m"))->id, 7U) << "it is too old";
}

}  // namespace
}  // namespace monolock::server::admin
