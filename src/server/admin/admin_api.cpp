#include "server/admin/admin_api.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/admin/activity.hpp"
#include "server/admin/gate.hpp"
#include "server/admin/shard_question.hpp"
#include "server/admin/survey.hpp"
#include "server/http/target.hpp"

namespace monolock::server::admin {

namespace {

using http::response;
using http::status;

constexpr std::size_t history_max = 100;

// How long an event stream that has just begun need not make room.
constexpr std::chrono::seconds stream_undisturbed{1};

response json(status code, std::string body) {
    return {.code = code, .content_type = "application/json", .body = std::move(body)};
}

response stalled() {
    return refuse(status::unavailable, "a shard has stalled");
}

response no_such_lock() {
    return refuse(status::not_found, "no such lock");
}

// A claim that was ended, and of which lock.
std::string ended_body(std::string_view name, const claim_view& who,
                       decltype(append_holder)& append_claim, const moment& now) {
    std::string claim;
    append_claim(claim, who, now.steady, now);
    std::string out = "{";
    append_text(out, "name", name);
    out += ',';
    out.append(claim, 1);
    return out += '\n';
}

// Why nobody was ended, and who has the lock.
std::string conflict_body(std::string_view why, const std::optional<claim_view>& holder,
                          const moment& now) {
    std::string out = "{";
    append_text(out, "error", why);
    out += ",\"holder\":";
    if (holder) {
        append_holder(out, *holder, now.steady, now);
    } else {
        out += "null";
    }
    return out += "}\n";
}

http::task<std::optional<std::string>> next_piece(std::shared_ptr<listing_pages> of) {
    co_return of->piece();
}

http::task<std::optional<std::string>> next_events(std::shared_ptr<event_stream> of) {
    co_return co_await of->next();
}

// What came of an attempt to end somebody, found out on the shard's thread in one turn.
struct ending {
    enum class outcome {
        no_lock,
        no_owner,  // grants are withheld: the server shuts down
        another_owner,
        no_waiter,
        several_waiters,
        ended_owner,
        ended_waiter,
    };
    outcome what = outcome::no_lock;
    std::optional<claim_view> who{};  // whom it ended; or the other owner
};

response response_to(const ending& done, std::string_view name) {
    using enum ending::outcome;
    const moment now = moment::now();
    switch (done.what) {
        case no_lock:
            break;
        case no_owner:
            return json(status::conflict, conflict_body("the lock has no owner", {}, now));
        case another_owner:
            return json(status::conflict,
                        conflict_body("the owner has another token", done.who, now));
        case no_waiter:
            return refuse(status::not_found, "no such waiter");
        case several_waiters:
            return refuse(status::conflict,
                          "several waiters have this address: name one by its id");
        case ended_owner:
            return json(status::ok, ended_body(name, *done.who, append_holder, now));
        case ended_waiter:
            return json(status::ok, ended_body(name, *done.who, append_waiter, now));
    }
    return no_such_lock();
}

ending end_owner(shard& of, const release_call& what, core::name_hash hash) {
    using enum ending::outcome;
    if (of.engine().table().find(what.name, hash) == nullptr) {
        return {.what = no_lock};
    }
    core::connected_session* const owner = of.engine().owner_of(what.name, hash);
    if (owner == nullptr) {
        return {.what = no_owner};
    }
    ending made{.what = ended_owner, .who = view_of(*owner)};
    if (what.token && *what.token != owner->token().value) {
        made.what = another_owner;
        return made;
    }
    of.end_by_operator(*owner);
    return made;
}

bool is_meant(const waiter_key& key, const core::session& who) {
    if (const auto* const id = std::get_if<std::uint64_t>(&key)) {
        return who.id().value == *id;
    }
    return static_cast<const socket_session&>(who).peer() == std::get<peer_address>(key);
}

ending end_waiter(shard& of, const kick_call& what, core::name_hash hash) {
    using enum ending::outcome;
    const core::named_lock* const lock = of.engine().table().find(what.name, hash);
    if (lock == nullptr) {
        return {.what = no_lock};
    }
    std::optional<core::session_id> found;
    for (const core::session& waiter : lock->waiters) {
        if (!is_meant(what.who, waiter)) {
            continue;
        }
        if (found) {
            return {.what = several_waiters};
        }
        found = waiter.id();
    }
    if (!found) {
        return {.what = no_waiter};
    }
    core::connected_session& who = *of.engine().waiter_of(what.name, hash, *found);
    ending made{.what = ended_waiter, .who = view_of(who)};
    of.end_by_operator(who);
    return made;
}

using found_locks = std::vector<lock_view>;
using found_changes = std::vector<ownership_change>;

shard_question<found_locks> ask_for_locks(loop& home, shard& of,
                                          const std::optional<std::string>& match) {
    shard_question<found_locks> question{home};
    of.ask([&of, match, slip = question.for_shard()] {
        if (slip.begin()) {
            survey::begin(of, match, [slip](found_locks found) { slip.answer(std::move(found)); });
        }
    });
    return question;
}

shard_question<std::optional<lock_view>> ask_for_lock(loop& home, shard& of,
                                                      const std::string& name,
                                                      core::name_hash hash) {
    shard_question<std::optional<lock_view>> question{home};
    of.ask([&of, name, hash, slip = question.for_shard()] {
        if (slip.begin()) {
            inspection::begin(of, name, hash, [slip](std::optional<lock_view> found) {
                slip.answer(std::move(found));
            });
        }
    });
    return question;
}

shard_question<ending> ask_to_release(loop& home, shard& of, const release_call& what,
                                      core::name_hash hash) {
    return ask<ending>(home, of, [&of, what, hash] { return end_owner(of, what, hash); });
}

shard_question<ending> ask_to_kick(loop& home, shard& of, const kick_call& what,
                                   core::name_hash hash) {
    return ask<ending>(home, of, [&of, what, hash] { return end_waiter(of, what, hash); });
}

shard_question<found_changes> ask_for_history(loop& home, shard& of, const std::string& name) {
    return ask<found_changes>(home, of,
                              [&of, name] { return of.history()->of(name, history_max); });
}

}  // namespace

admin_api::admin_api(loop& on, shard_surroundings& around, std::optional<std::string> host)
    : loop_{&on},
      around_{&around},
      host_{std::move(host)},
      started_at_{std::chrono::steady_clock::now()},
      forget_{on} {}

http::service admin_api::service(logger& log) {
    return {.answer = [this](http::request what) { return answer(std::move(what)); },
            .refuse = refuse,
            .bounds = {},
            .log = &log};
}

shard& admin_api::home_of(core::name_hash hash) const {
    return *around_->shards[core::shard_of(hash, around_->shards.size())];
}

http::task<response> admin_api::answer(http::request what) {
    response made = co_await decide(std::move(what));
    made.fields.push_back(
        {.name = "Content-Security-Policy", .value = "default-src 'none'; frame-ancestors 'none'"});
    co_return made;
}

http::task<response> admin_api::decide(http::request what) {
    if (host_) {
        if (const auto why = objection(what, *host_)) {
            co_return refuse(status::forbidden, *why);
        }
    }
    auto understood = understand(what);
    if (auto* const no = std::get_if<response>(&understood)) {
        co_return std::move(*no);
    }
    api_call call = std::get<api_call>(std::move(understood));
    co_return co_await perform(std::move(call));
}

http::task<response> admin_api::perform(api_call what) {
    if (auto* const call = std::get_if<list_call>(&what)) {
        co_return co_await list(std::move(*call));
    }
    if (auto* const call = std::get_if<show_call>(&what)) {
        co_return co_await show(std::move(*call));
    }
    if (auto* const call = std::get_if<release_call>(&what)) {
        co_return co_await release(std::move(*call));
    }
    if (auto* const call = std::get_if<kick_call>(&what)) {
        co_return co_await kick(std::move(*call));
    }
    if (auto* const call = std::get_if<history_call>(&what)) {
        co_return co_await history(std::move(*call));
    }
    if (std::holds_alternative<events_call>(what)) {
        co_return events();
    }
    co_return info();
}

response admin_api::info() const {
    const auto uptime = std::chrono::steady_clock::now() - started_at_;
    const activity now = activity_of(*around_);
    std::string out = "{";
    append_text(out, "version", MONOLOCK_VERSION);
    out += ',';
    append_number(out, "uptime_ms",
                  static_cast<std::uint64_t>(
                      std::chrono::duration_cast<std::chrono::milliseconds>(uptime).count()));
    out += ",\"config\":{";
    append_text(out, "listen", shown_.listen);
    out += ',';
    append_text(out, "ops_listen", shown_.ops_listen);
    out += ',';
    append_text(out, "admin_listen", shown_.admin_listen);
    out += ",\"tls\":";
    out += shown_.tls ? "true" : "false";
    out += ",\"mtls\":";
    out += shown_.mutual_tls ? "true" : "false";
    out += ',';
    append_text(out, "acl_file", shown_.acl_file);
    out += ',';
    append_text(out, "audit_log", shown_.audit_log);
    out += ',';
    append_number(out, "io_timeout_ms", static_cast<std::uint64_t>(shown_.io_timeout.count()));
    out += ',';
    append_number(out, "threads", shown_.threads);
    out += "},";
    append_number(out, "locks", now.locks);
    out += ',';
    append_number(out, "sessions", now.sessions);
    out += "}\n";
    return json(status::ok, std::move(out));
}

http::task<std::shared_ptr<const listing>> admin_api::take_listing(
    std::optional<std::string> match) {
    std::vector<shard_question<found_locks>> questions;
    for (const auto& each : around_->shards) {
        questions.push_back(ask_for_locks(*loop_, *each, match));
    }
    found_locks all;
    bool complete = true;
    for (auto& question : questions) {
        auto found = co_await question.wait();
        complete = complete && found;
        if (found) {
            std::move(found->begin(), found->end(), std::back_inserter(all));
        }
    }
    if (!complete) {
        co_return nullptr;
    }
    co_return make_listing(++listings_, std::move(match), moment::now(), std::move(all));
}

std::shared_ptr<const listing> admin_api::keep(std::shared_ptr<const listing> made) {
    auto kept = kept_.keep(std::move(made));
    forget_.expires_after(kept_listings::age_max + std::chrono::seconds{1});
    forget_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            kept_.forget_old(std::chrono::steady_clock::now());
        }
    });
    return kept;
}

http::task<response> admin_api::list(list_call what) {
    std::shared_ptr<const listing> from;
    if (what.snapshot) {
        from = kept_.find(*what.snapshot, std::chrono::steady_clock::now());
        if (!from || from->match != what.match) {
            co_return refuse(status::not_found, "this listing is not kept any more: begin anew");
        }
    } else if (what.after) {
        from = kept_.find(what.match, std::chrono::steady_clock::now());
    }
    if (!from) {
        from = co_await take_listing(what.match);
        if (!from) {
            co_return stalled();
        }
        if (what.limit) {
            from = keep(std::move(from));
        }
    }
    const std::size_t begin = what.after ? from->behind(*what.after) : 0;
    const std::size_t end =
        begin + std::min(from->locks.size() - begin, what.limit.value_or(from->locks.size()));
    std::string next;
    if (end < from->locks.size()) {
        next = "/api/locks?limit=" + std::to_string(*what.limit) +
               "&snapshot=" + std::to_string(from->id) +
               "&after=" + http::percent_encoded(from->locks[end - 1].name);
        if (what.match) {
            next += "&match=" + http::percent_encoded(*what.match);
        }
    }
    const auto pages =
        std::make_shared<listing_pages>(std::move(from), begin, end, std::move(next));
    response made = json(status::ok, {});
    made.more = [pages] { return next_piece(pages); };
    co_return made;
}

http::task<response> admin_api::show(show_call what) {
    const core::name_hash hash = around_->hasher(what.name);
    auto question = ask_for_lock(*loop_, home_of(hash), what.name, hash);
    const auto found = co_await question.wait();
    if (!found) {
        co_return stalled();
    }
    if (!*found) {
        co_return no_such_lock();
    }
    std::string out;
    append_lock(out, **found, moment::now());
    co_return json(status::ok, std::move(out += '\n'));
}

http::task<response> admin_api::release(release_call what) {
    const core::name_hash hash = around_->hasher(what.name);
    auto question = ask_to_release(*loop_, home_of(hash), what, hash);
    const auto done = co_await question.wait();
    co_return done ? response_to(*done, what.name) : stalled();
}

http::task<response> admin_api::kick(kick_call what) {
    const core::name_hash hash = around_->hasher(what.name);
    auto question = ask_to_kick(*loop_, home_of(hash), what, hash);
    const auto done = co_await question.wait();
    co_return done ? response_to(*done, what.name) : stalled();
}

http::task<response> admin_api::history(history_call what) {
    auto question = ask_for_history(*loop_, home_of(around_->hasher(what.name)), what.name);
    const auto found = co_await question.wait();
    if (!found) {
        co_return stalled();
    }
    const moment now = moment::now();
    std::string out = "{";
    append_text(out, "name", what.name);
    out += ",\"history\":[";
    for (std::size_t index = 0; index < found->size(); ++index) {
        out += index == 0 ? "" : ",";
        append_change(out, (*found)[index], now);
    }
    co_return json(status::ok, std::move(out += "]}\n"));
}

// The oldest gives way: which of them nobody reads any more cannot be told while all that they say
// goes into buffers. Who still reads may ask again, and is the newest then.
bool admin_api::make_room_for_stream() {
    std::erase_if(streams_, [](const auto& each) { return each.expired(); });
    if (streams_.size() < streams_max_) {
        return true;
    }
    const auto oldest = streams_.front().lock();
    if (!oldest || std::chrono::steady_clock::now() - oldest->begun_at() < stream_undisturbed) {
        return false;
    }
    oldest->end();
    streams_.erase(streams_.begin());
    return true;
}

response admin_api::events() {
    if (!make_room_for_stream()) {
        return refuse(status::unavailable, "too many event streams at once");
    }
    const auto stream = std::make_shared<event_stream>(*loop_, *around_);
    streams_.push_back(stream);
    response made{.code = status::ok, .content_type = "text/event-stream", .body = {}};
    made.more = [stream] { return next_events(stream); };
    return made;
}

}  // namespace monolock::server::admin
