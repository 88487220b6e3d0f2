#include "server/admin/admin_api.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/admin/activity.hpp"
#include "server/admin/gate.hpp"
#include "server/admin/page.hpp"
#include "server/admin/shard_question.hpp"
#include "server/admin/survey.hpp"
#include "server/http/target.hpp"

namespace monolock::server::admin {

namespace {

using http::response;
using http::status;

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

// Each behind another member.

void append_reload(std::string& out, const std::optional<standing::last_reload>& last) {
    if (!last) {
        out += ",\"reload\":null";
        return;
    }
    out += ",\"reload\":{\"at\":\"";
    telemetry::append_rfc3339(out, last->at);
    out += "\",\"failed\":[";
    for (std::size_t index = 0; index < last->failed.size(); ++index) {
        out.append(index == 0 ? "\"" : ",\"").append(last->failed[index]).append("\"");
    }
    out += "]}";
}

void append_totals(std::string& out, const activity& all, const standing& now) {
    out += ",\"totals\":{";
    append_number(out, "grants", all.grants);
    out += ',';
    append_number(out, "handovers", all.handovers);
    out += ',';
    append_number(out, "heartbeats", all.heartbeats);
    out += ',';
    append_number(out, "connections", all.connections);
    out += ",\"ends\":{";
    for (std::size_t index = 0; index < end_reasons.size(); ++index) {
        out += index == 0 ? "" : ",";
        append_number(out, core::to_string(end_reasons[index]), all.ends[index]);
    }
    out += "},";
    append_number(out, "client_errors", all.client_errors);
    out += ',';
    append_number(out, "acl_denials", now.acl_denials);
    out += ',';
    append_number(out, "accept_errors", now.accept_errors);
    out += ',';
    append_number(out, "tls_handshake_errors", now.tls_handshake_errors);
    out += ',';
    append_number(out, "audit_lost_events", now.audit_lost_events);
    out += '}';
}

void append_role(std::string& out, const role_status& now) {
    out += ",\"failover\":{";
    append_text(out, "role", coordination::to_string(now.role));
    out += ',';
    append_text(out, "active_server", now.active_server);
    out += ",\"term\":";
    out += now.term ? std::to_string(now.term->value) : "null";
    out += ',';
    append_number(out, "failovers", now.failovers);
    out += ',';
    append_number(out, "etcd_errors", now.etcd_errors);
    out += ',';
    append_text(out, "last_loss", now.last_loss);
    out += ',';
    append_text(out, "last_error", now.last_error);
    out += '}';
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

response streamed(listing_pages pages) {
    const auto source = std::make_shared<listing_pages>(std::move(pages));
    response made = json(status::ok, {});
    made.more = [source] { return next_piece(source); };
    return made;
}

http::task<std::optional<std::string>> next_events(std::shared_ptr<event_stream> of) {
    co_return co_await of->next();
}

http::task<std::optional<std::string>> no_events() {
    co_return std::nullopt;
}

// What came of an attempt to end somebody, found out on the shard's thread in one turn.
struct ending {
    enum class outcome {
        no_lock,
        no_owner,  // grants are withheld: a shutdown, or a grant delay
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

shard_question<found_locks> ask_for_locks(loop& home, shard& of, const survey::interest& what) {
    shard_question<found_locks> question{home};
    of.ask([&of, what, slip = question.for_shard()] {
        if (slip.begin()) {
            survey::begin(of, what, [slip](found_locks found) { slip.answer(std::move(found)); });
        }
    });
    return question;
}

shard_question<std::optional<lock_view>> ask_for_lock(loop& home, shard& of,
                                                      const inspection::interest& what) {
    shard_question<std::optional<lock_view>> question{home};
    of.ask([&of, what, slip = question.for_shard()] {
        if (slip.begin()) {
            inspection::begin(of, what, [slip](std::optional<lock_view> found) {
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

shard_question<ownership_history::past> ask_for_history(loop& home, shard& of,
                                                        const std::string& name,
                                                        core::name_hash hash) {
    return ask<ownership_history::past>(home, of,
                                        [&of, name, hash] { return of.history()->of(name, hash); });
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

// Whatever comes from here is read by pages of this origin alone, and only the page itself may be
// shown as one.
http::task<response> admin_api::answer(http::request what) {
    response made = co_await decide(std::move(what));
    made.fields.push_back({.name = "Cross-Origin-Resource-Policy", .value = "same-origin"});
    const bool has_policy =
        std::any_of(made.fields.begin(), made.fields.end(),
                    [](const http::field& each) { return each.name == "Content-Security-Policy"; });
    if (!has_policy) {
        made.fields.push_back({.name = "Content-Security-Policy",
                               .value = "default-src 'none'; frame-ancestors 'none'"});
    }
    co_return made;
}

http::task<response> admin_api::decide(http::request what) {
    if (host_ || is_of_a_browser(what)) {
        if (const auto why = objection(what, host_.value_or(""))) {
            co_return refuse(status::forbidden, *why);
        }
    }
    if (auto page = page_response(what)) {
        co_return *std::move(page);
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
    if (auto* const call = std::get_if<window_call>(&what)) {
        co_return co_await window(std::move(*call));
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
    if (const auto* const call = std::get_if<events_call>(&what)) {
        co_return events(*call);
    }
    co_return info();
}

response admin_api::info() const {
    const auto uptime = std::chrono::steady_clock::now() - started_at_;
    const activity now = activity_of(*around_);
    const standing server = standing_();
    std::string out = "{";
    append_text(out, "version", MONOLOCK_VERSION);
    out += ',';
    append_text(out, "state", server.state);
    out += ',';
    append_flag(out, "delays_grants", server.delays_grants);
    out += ',';
    append_flag(out, "audit_log_refused", server.audit_is_refused);
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
    out += ',';
    append_flag(out, "tls", shown_.tls);
    out += ',';
    append_flag(out, "mtls", shown_.mutual_tls);
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
    out += ',';
    append_number(out, "sessions_max", server.sessions_max);
    out += ',';
    append_number(out, "waiters", now.waiters);
    append_reload(out, server.reloaded);
    append_totals(out, now, server);
    if (role_) {
        append_role(out, role_());
    }
    out += "}\n";
    return json(status::ok, std::move(out));
}

// Nothing: a shard has stalled.
http::task<std::optional<found_locks>> admin_api::find_locks(survey::interest what) {
    std::vector<shard_question<found_locks>> questions;
    for (const auto& each : around_->shards) {
        questions.push_back(ask_for_locks(*loop_, *each, what));
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
    co_return complete ? std::optional{std::move(all)} : std::nullopt;
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
        survey::interest interest{.match = what.match};
        auto found = co_await find_locks(std::move(interest));
        if (!found) {
            co_return stalled();
        }
        from = make_listing(++listings_, what.match, moment::now(), *std::move(found));
        if (what.limit) {
            from = keep(std::move(from));
        }
    }
    listing_page page = page_of(*from, what);
    co_return streamed(listing_pages{std::move(from), std::move(page)});
}

http::task<response> admin_api::window(window_call what) {
    survey::interest interest{.match = what.match, .waiters_max = what.waiters_max};
    auto found = co_await find_locks(std::move(interest));
    if (!found) {
        co_return stalled();
    }
    co_return streamed(listing_pages{make_window(what, moment::now(), *std::move(found))});
}

http::task<response> admin_api::show(show_call what) {
    const core::name_hash hash = around_->hasher(what.name);
    const inspection::interest interest{
        .name = what.name,
        .hash = hash,
        .waiters_max = what.waiters_max.value_or(inspection::interest{}.waiters_max)};
    auto question = ask_for_lock(*loop_, home_of(hash), interest);
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
    const core::name_hash hash = around_->hasher(what.name);
    auto question = ask_for_history(*loop_, home_of(hash), what.name, hash);
    const auto found = co_await question.wait();
    if (!found) {
        co_return stalled();
    }
    const moment now = moment::now();
    std::string out = "{";
    append_text(out, "name", what.name);
    out += ',';
    append_time(out, "now", now.steady, now);
    out += ',';
    append_time(out, "complete_after", found->complete_after.value_or(started_at_), now);
    out += ",\"history\":[";
    for (std::size_t index = 0; index < found->changes.size(); ++index) {
        out += index == 0 ? "" : ",";
        append_change(out, found->changes[index], now);
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

response admin_api::events(events_call what) {
    response made{.code = status::ok, .content_type = "text/event-stream", .body = {}};
    if (what.is_head) {
        made.more = no_events;  // as of a stream, its length is not said
        return made;
    }
    if (!make_room_for_stream()) {
        return refuse(status::unavailable, "too many event streams at once");
    }
    const auto stream = std::make_shared<event_stream>(*loop_, *around_, what.recent);
    streams_.push_back(stream);
    made.more = [stream] { return next_events(stream); };
    return made;
}

}  // namespace monolock::server::admin
