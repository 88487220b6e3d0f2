#include "server/admin/event_stream.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "server/admin/api_json.hpp"

namespace monolock::server::admin {

namespace {

void append_rate(std::string& out, std::string_view key, std::uint64_t count, double seconds) {
    std::array<char, 32> text{};
    const auto [end, failure] =
        std::to_chars(text.data(), text.data() + text.size(), static_cast<double>(count) / seconds,
                      std::chars_format::fixed, 1);
    out += ",\"";
    out += key;
    out += "\":";
    out.append(text.data(), end);
}

}  // namespace

event_stream::event_stream(loop& on, shard_surroundings& around, std::size_t recent)
    : loop_{&on},
      around_{&around},
      recent_{recent},
      timer_{on},
      begun_at_{std::chrono::steady_clock::now()},
      next_(around.shards.size()),
      last_{activity_of(around)},
      last_at_{begun_at_} {}

void event_stream::end() {
    ended_ = true;
    timer_.cancel();
}

http::task<std::optional<std::string>> event_stream::next() {
    if (opened_ && !ended_) {
        timer_.expires_after(interval);
        co_await timer_.async_wait(http::as_result);
    }
    if (ended_) {
        co_return std::nullopt;
    }
    const bool is_first = !std::exchange(opened_, true);
    batch learnt = co_await learn();
    if (is_first) {
        leave_recent(learnt);
    }
    const moment now = moment::now();
    std::string out;
    for (const ownership_change& each : learnt.changes) {
        out += "event: change\ndata: ";
        append_change(out, each, now);
        out += "\n\n";
    }
    if (learnt.lost > 0) {
        out += "event: lost\ndata: {";
        append_number(out, "changes", learnt.lost);
        out += "}\n\n";
    }
    append_activity(out);
    co_return out;
}

shard_question<event_stream::news> event_stream::ask_for_news(
    shard& of, std::optional<std::uint64_t> from) const {
    const std::size_t count = from ? changes_max : recent_;
    return ask<news>(*loop_, of, [&of, from, count] {
        const ownership_history& past = *of.history();
        return news{.changes = past.since(from.value_or(0), count), .next = past.next()};
    });
}

// Of what each shard knew, the last of all.
void event_stream::leave_recent(batch& of) const {
    const std::size_t count = of.changes.size();
    const auto gone = static_cast<std::ptrdiff_t>(count - std::min(count, recent_));
    of.changes.erase(of.changes.begin(), of.changes.begin() + gone);
}

http::task<event_stream::batch> event_stream::learn() {
    std::vector<shard_question<news>> questions;
    for (std::size_t number = 0; number < next_.size(); ++number) {
        questions.push_back(ask_for_news(*around_->shards[number], next_[number]));
    }
    batch all;
    for (std::size_t number = 0; number < next_.size(); ++number) {
        std::optional<news> found = co_await questions[number].wait();
        if (!found) {
            continue;
        }
        if (next_[number]) {
            all.lost += found->next - *next_[number] - found->changes.size();
        }
        next_[number] = found->next;
        std::move(found->changes.begin(), found->changes.end(), std::back_inserter(all.changes));
    }
    // A promotion happens at the very moment of the end before it: stable, so that it stays behind.
    std::stable_sort(all.changes.begin(), all.changes.end(),
                     [](const ownership_change& left, const ownership_change& right) {
                         return left.at < right.at;
                     });
    co_return all;
}

void event_stream::append_activity(std::string& out) {
    const activity now = activity_of(*around_);
    const core::time_point at = std::chrono::steady_clock::now();
    const double seconds =
        std::max(0.001, std::chrono::duration<double>{at - std::exchange(last_at_, at)}.count());
    out += "event: activity\ndata: {";
    append_number(out, "locks", now.locks);
    out += ',';
    append_number(out, "sessions", now.sessions);
    out += ',';
    append_number(out, "waiters", now.waiters);
    append_rate(out, "grants_per_s", now.grants - last_.grants, seconds);
    append_rate(out, "handovers_per_s", now.handovers - last_.handovers, seconds);
    append_rate(out, "releases_per_s", now.releases - last_.releases, seconds);
    append_rate(out, "heartbeats_per_s", now.heartbeats - last_.heartbeats, seconds);
    out += "}\n\n";
    last_ = now;
}

}  // namespace monolock::server::admin
