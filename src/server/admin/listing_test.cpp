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
            nlohmann::json::parse(text_of(listing_pages{made, 0, made->locks.size(), ""}, pieces));
        EXPECT_EQ(json.size(), 1U);
        ASSERT_EQ(json["locks"].size(), static_cast<std::size_t>(count));
        for (std::size_t index = 0; index < made->locks.size(); ++index) {
            EXPECT_EQ(json["locks"][index]["name"], made->locks[index].name);
        }
        EXPECT_EQ(pieces > 1, count == 5'000);
    }
}

TEST(listing_pages, a_page_says_where_the_next_one_is) {
    const auto made = listing_of({lock("a"), lock("b"), lock("c")});
    int pieces = 0;
    const auto json =
        nlohmann::json::parse(text_of(listing_pages{made, 1, 2, "/api/locks?after=b"}, pieces));
    EXPECT_EQ(json["locks"].size(), 1U);
    EXPECT_EQ(json["locks"][0]["name"], "b");
    EXPECT_EQ(json["next"], "/api/locks?after=b");
}

TEST(kept_listings, are_few_and_for_a_while) {
    kept_listings kept;
    for (std::uint64_t id = 1; id <= kept_listings::count_max + 1; ++id) {
        kept.keep(listing_of({}, id, "m", start + std::chrono::seconds{id}));
    }
    const core::time_point now = start + 10s;
    EXPECT_EQ(kept.find(1, now), nullptr) << "it made room";
    EXPECT_EQ(kept.find(2, now)->id, 2U);
    EXPECT_EQ(kept.find("m", now)->id, kept_listings::count_max + 1) << "the newest";
    EXPECT_EQ(kept.find(std::nullopt, now), nullptr) << "of another match";
    EXPECT_EQ(kept.find(2, start + 2s + kept_listings::age_max + 1ns), nullptr);
    EXPECT_NE(kept.find(3, start + 2s + kept_listings::age_max + 1ns), nullptr);
    kept.forget_old(start + 1h);
    EXPECT_TRUE(kept.empty());
}

}  // namespace
}  // namespace monolock::server::admin
