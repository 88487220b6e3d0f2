// Listings from the server's hands into monolockctl's: locks of any name, written as pages of JSON
// while others come to be kept and are forgotten, read back page by page along the server's own
// "next". Each lock arrives once, in order and unchanged.

#include <netinet/in.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/admin/api_answers.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/pieces.hpp"
#include "fuzz/utf8_oracle.hpp"
#include "server/admin/api_call.hpp"
#include "server/admin/listing.hpp"

namespace {

namespace admin = monolock::server::admin;
namespace cli = monolock::cli;
namespace core = monolock::core;
namespace fuzz = monolock::fuzz;
using fuzz::choices;
using fuzz::require;
using std::chrono::milliseconds;

constexpr core::time_point start{std::chrono::hours{100}};

std::string any_name(choices& choose) {
    const std::string_view bytes = choose.text(1 + choose.next() % 6);
    return !bytes.empty() && fuzz::utf8_oracle(bytes) ? std::string{bytes} : "a";
}

monolock::server::peer_address any_peer(choices& choose) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = choose.next();
    address.sin_addr.s_addr = choose.next();
    sockaddr_storage storage{};
    std::memcpy(&storage, &address, sizeof address);
    return monolock::server::peer_address::of(-1, storage);
}

admin::claim_view any_claim(choices& choose, core::time_point taken_at) {
    const auto ago = [&] { return milliseconds{choose.next()}; };
    return {.id = {1U + choose.next()},
            .identity = choose.next() % 2 == 0 ? "" : any_name(choose),
            .peer = any_peer(choose),
            .since = taken_at - ago(),
            .last_seen = taken_at - ago(),
            .lease = milliseconds{1 + choose.next()},
            .token = {1U + choose.number(7)}};
}

// No two are taken at the same moment, so that one of them is the newest of a name.
constexpr std::size_t locks_max = 12;

admin::lock_view any_lock(choices& choose, std::size_t index) {
    const auto moment = choose.next() * locks_max + index;
    admin::lock_view made{.name = any_name(choose),
                          .taken_at = start + milliseconds{moment},
                          .holder = {},
                          .waiters = {},
                          .waiters_total = choose.next()};
    if (choose.next() % 4 != 0) {
        made.holder = any_claim(choose, made.taken_at);
    }
    made.waiters.resize(choose.next() % 3);
    std::ranges::generate(made.waiters, [&] { return any_claim(choose, made.taken_at); });
    made.waiters_total += made.waiters.size();
    return made;
}

void require_same(const admin::claim_view& written, const cli::claim_facts& read) {
    require(read.id == written.id.value && read.identity == written.identity);
    require(read.remote_addr == written.peer.to_string() && read.lease == written.lease);
}

void require_same(const admin::lock_view& written, const cli::lock_facts& read) {
    require(read.name == written.name && read.waiters_total == written.waiters_total);
    require(read.holder.has_value() == written.holder.has_value());
    if (read.holder) {
        require_same(*written.holder, *read.holder);
        require(read.holder->token == written.holder->token.value);
        require(read.holder->held == written.taken_at - written.holder->since);
        require(read.holder->silent == written.taken_at - written.holder->last_seen);
    }
    require(read.waiters.size() == written.waiters.size());
    for (std::size_t index = 0; index < read.waiters.size(); ++index) {
        require_same(written.waiters[index], read.waiters[index]);
        require(read.waiters[index].waited == written.taken_at - written.waiters[index].since);
    }
}

// What must be told: of each name the newest, by name.
std::map<std::string, admin::lock_view> expected_of(const std::vector<admin::lock_view>& found) {
    std::map<std::string, admin::lock_view> expected;
    for (const admin::lock_view& each : found) {
        const auto [at, is_new] = expected.try_emplace(each.name, each);
        if (!is_new && at->second.taken_at < each.taken_at) {
            at->second = each;
        }
    }
    return expected;
}

cli::json document_of(admin::listing_pages pages) {
    std::string text;
    while (const auto piece = pages.piece()) {
        require(!piece->empty());
        text += *piece;
    }
    return cli::parse_object(text);
}

admin::list_call call_of(const std::string& target) {
    const auto understood =
        admin::understand({.method = "GET", .target = target, .fields = {}, .body = {}});
    return std::get<admin::list_call>(std::get<admin::api_call>(understood));
}

// Reads a listing to its end, so many at a time.
void walk(const std::shared_ptr<const admin::listing>& from,
          const std::map<std::string, admin::lock_view>& expected, admin::list_call call) {
    std::string behind;
    auto next_expected = expected.begin();
    for (;;) {
        const cli::json page = document_of(admin::listing_pages{from, admin::page_of(*from, call)});
        const auto locks = cli::locks_from(page, behind);
        require(!call.limit || locks.size() <= *call.limit);
        for (const cli::lock_facts& each : locks) {
            require(next_expected != expected.end());
            require_same((next_expected++)->second, each);
        }
        const auto next = cli::next_page_from(page);
        if (!next) {
            break;
        }
        require(!locks.empty());
        behind = locks.back().name;
        const auto following = call_of(*next);
        require(following.limit == call.limit && following.match == call.match);
        require(following.snapshot == from->id && following.after == behind);
        call = following;
    }
    require(next_expected == expected.end());
}

// Listings that are kept: never more claims than there is room for, but for the few that may
// always be; none for longer than its time; and what is found is what was asked for.
void keep_some(choices& choose) {
    constexpr std::size_t claims_max = 6;
    admin::kept_listings kept{claims_max};
    core::time_point now = start;
    std::map<std::uint64_t, std::shared_ptr<const admin::listing>> made;
    for (std::uint64_t id = 1; choose.any() && id < 30; ++id) {
        now += milliseconds{choose.next() * 200};
        const std::optional<std::string> match =
            choose.next() % 2 == 0 ? std::nullopt : std::optional<std::string>{"m"};
        std::vector<admin::lock_view> locks(choose.next() % 5);
        for (std::size_t index = 0; index < locks.size(); ++index) {
            locks[index].name = std::string(1, static_cast<char>('a' + index));
        }
        const auto one =
            admin::make_listing(id, match, {.steady = now, .wall = {}}, std::move(locks));
        const auto to_read = kept.keep(one);
        require(to_read == one ||
                (to_read == made[to_read->id] && to_read->match == match &&
                 now - to_read->taken.steady <= admin::kept_listings::shared_age_max));
        made[id] = one;
        std::size_t claims = 0;
        std::size_t count = 0;
        std::uint64_t newest = 0;
        for (const auto& [known, each] : made) {
            if (const auto found = kept.find(known, now)) {
                require(found == each);
                require(now - found->taken.steady <= admin::kept_listings::age_max);
                claims += found->claims;
                ++count;
                newest = found->match == match ? known : newest;
            }
        }
        require(count <= admin::kept_listings::count_min || claims <= claims_max);
        require(count > 0 && !kept.empty());
        const auto by_match = kept.find(match, now);
        require(by_match ? by_match->id == newest : newest == 0);
    }
    kept.forget_old(now + admin::kept_listings::age_max + milliseconds{1});
    require(kept.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices choose{data, size};
    if (choose.next() % 4 == 0) {
        keep_some(choose);
        return 0;
    }
    admin::list_call call;
    call.match = choose.next() % 4 == 0 ? std::optional{any_name(choose)} : std::nullopt;
    if (const std::uint8_t limit = choose.next() % 5; limit != 0) {
        call.limit = limit;
    }
    std::vector<admin::lock_view> found;
    while (choose.any() && found.size() < locks_max) {
        found.push_back(any_lock(choose, found.size()));
    }
    const auto expected = expected_of(found);
    const auto from = admin::make_listing(7, call.match, {.steady = start, .wall = {}}, found);
    require(from->locks.size() == expected.size());
    walk(from, expected, call);
    return 0;
}
