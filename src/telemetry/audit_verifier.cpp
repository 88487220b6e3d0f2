#include "telemetry/audit_verifier.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::telemetry {

namespace {

constexpr std::size_t first_gaps_max = 10;

// A second's, as tokens are made (docs/protocol.md, "Fencing tokens").
constexpr std::uint64_t tokens_a_moment = std::uint64_t{1000} << 10U;

std::size_t session_of(const audit_record& record) noexcept {
    const std::hash<std::string_view> hash;
    return hash(record.remote_addr) * 31U + hash(record.identity);
}

std::string token_text(std::uint64_t token) {
    return "token " + std::to_string(token);
}

bool before(const auto& entry, std::uint64_t token) {
    return entry.token < token;
}

}  // namespace

void audit_verifier::begin_file(std::string name) {
    files_.push_back(std::move(name));
    here_ = {.file = files_.size() - 1, .line = 0};
}

std::optional<audit_verifier::violation> audit_verifier::take(std::string_view line) {
    ++here_.line;
    ++found_.lines;
    if (auto why = take_line(line)) {
        return violation{.where = here_, .why = *std::move(why)};
    }
    return std::nullopt;
}

std::optional<audit_verifier::violation> audit_verifier::end_file(std::string_view rest) {
    if (rest.empty()) {
        return std::nullopt;
    }
    ++here_.line;
    if (auto why = take_rest(rest)) {
        return violation{.where = here_, .why = *std::move(why)};
    }
    return std::nullopt;
}

audit_verifier::summary audit_verifier::result() const {
    summary out = found_;
    out.held = open_.size();
    return out;
}

std::string audit_verifier::text_of(const place& where) const {
    return files_[where.file] + ":" + std::to_string(where.line);
}

std::string audit_verifier::grant_of(const lock_state& state) const {
    return "the grant of " + token_text(state.token) + " at " + text_of(state.where);
}

audit_verifier::verdict audit_verifier::take_line(std::string_view line) {
    const audit_line read = reader_.read(line);
    if (const auto* const record = std::get_if<audit_record>(&read)) {
        return take_record(*record);
    }
    if (const auto* const gap = std::get_if<audit_gap>(&read)) {
        return take_gap(*gap);
    }
    auto malformed = std::get<audit_malformed>(read);
    malformed.why.insert(0, "no record of the audit log: ");
    return take_broken(line, malformed);
}

// What stands behind the last newline: of the record that a crash cut off there may be all.
audit_verifier::verdict audit_verifier::take_rest(std::string_view rest) {
    const audit_line read = reader_.read(rest);
    const auto* const malformed = std::get_if<audit_malformed>(&read);
    const char* const why = "the file ends within the line";
    if (malformed != nullptr) {
        return take_broken(rest, {.why = why, .breaks_off = malformed->breaks_off});
    }
    if (!allowed_.crashes) {
        return why;
    }
    ++found_.lines;
    return take_line(rest);
}

// A crash within a write leaves the beginning of a record, never its end.
audit_verifier::verdict audit_verifier::take_broken(std::string_view line,
                                                    const audit_malformed& what) {
    const bool is_end = line.ends_with('}') && !what.breaks_off;
    if (!allowed_.crashes || line.empty() || is_end) {
        return what.why;
    }
    ++found_.broken_off;
    end_all_up_to(found_.lines);
    return std::nullopt;
}

audit_verifier::verdict audit_verifier::take_record(const audit_record& record) {
    if (std::holds_alternative<audit_denied>(record.event)) {
        ++found_.denied;
        return std::nullopt;
    }
    if (std::holds_alternative<audit_kick_waiter>(record.event)) {
        ++found_.kicked;
        return std::nullopt;
    }
    verdict why;
    if (const auto* const granted = std::get_if<audit_granted>(&record.event)) {
        why = take_granted(record, *granted);
    } else if (const auto* const released = std::get_if<audit_released>(&record.event)) {
        why = take_released(record, *released);
    } else {
        why = take_force_release(record, std::get<audit_force_release>(record.event));
    }
    forget_old_tokens();
    return why;
}

audit_verifier::verdict audit_verifier::take_gap(const audit_gap& gap) {
    if (gap.lost == 0) {
        return "a gap in which nothing was lost";
    }
    ++found_.gaps;
    found_.lost += gap.lost;
    gap_sequence_ = found_.lines;
    if (found_.first_gaps.size() < first_gaps_max) {
        found_.first_gaps.push_back(here_);
    }
    return std::nullopt;
}

audit_verifier::verdict audit_verifier::take_granted(const audit_record& record,
                                                     const audit_granted& event) {
    ++found_.grants;
    lock_state* lock = find(record.lock);
    if (lock != nullptr && lock->held) {
        if (auto why = take_missing_end(*lock, event.token.value)) {
            return why;
        }
        lock = find(record.lock);
    }
    if (lock == nullptr) {
        lock = &make(record.lock);
    }
    if (auto why = note_token(*lock, event.token.value)) {
        return why;
    }
    lock->session = session_of(record);
    lock->held = true;
    lock->forced = false;
    open_.push_back(*lock);
    return std::nullopt;
}

// The lock is granted although it is held.
audit_verifier::verdict audit_verifier::take_missing_end(lock_state& lock, std::uint64_t token) {
    const std::string no_end = grant_of(lock) + " has no end";
    if (lock.sequence < gap_sequence_) {
        end_held(lock);
        return miss(1, no_end);
    }
    if (allowed_.crashes) {
        end_all_up_to(lock.sequence);
        return std::nullopt;
    }
    return "lock " + quoted(lock.name) + " is granted with " + token_text(token) + ", but " +
           no_end;
}

audit_verifier::verdict audit_verifier::take_released(const audit_record& record,
                                                      const audit_released& event) {
    ++found_.ends;
    lock_state* const lock = find(record.lock);
    if (lock == nullptr || !lock->held || lock->token != event.token.value) {
        return take_unknown_end(lock, record, event.token.value);
    }
    if (lock->session != session_of(record)) {
        return "the end is told of another session than " + grant_of(*lock);
    }
    const bool by_force = event.reason == "force";
    if (lock->forced && !by_force) {
        return "an operator ended " + grant_of(*lock) + ", yet its end has another reason";
    }
    if (!lock->forced && by_force) {
        const char* const why = "ended by force, but no force_release stands before it";
        if (lock->sequence > gap_sequence_) {
            return why;
        }
        if (auto too_many = miss(1, why)) {
            return too_many;
        }
    }
    end_held(*lock);
    forget_if_old(*lock);
    return std::nullopt;
}

// The end of a grant that this log does not show, or showed and ended already.
audit_verifier::verdict audit_verifier::take_unknown_end(lock_state* lock,
                                                         const audit_record& record,
                                                         std::uint64_t token) {
    std::string why = "lock " + quoted(record.lock) + " is released with " + token_text(token);
    const bool held = lock != nullptr && lock->held;
    if (held) {
        why += ", but its owner has " + grant_of(*lock);
    } else if (lock != nullptr && lock->token == token) {
        why += " a second time; " + grant_of(*lock) + " has its end";
    } else {
        why += ", which was not granted";
    }
    if (is_from_before(lock, token)) {
        ++found_.ends_from_before;
        ends_from_before_.insert(token);
        return std::nullopt;
    }
    const bool gap_since = gap_sequence_ > (lock != nullptr ? lock->sequence : 0);
    if (!gap_since || is_known(token) || (lock != nullptr && lock->token >= token)) {
        return why;
    }
    // The grant must be among what a gap lost, and so must be the end of the owner before.
    if (auto too_many = miss(held ? 2 : 1, why)) {
        return too_many;
    }
    if (held) {
        end_held(*lock);
    }
    return note_token(lock != nullptr ? *lock : make(record.lock), token);
}

audit_verifier::verdict audit_verifier::take_force_release(const audit_record& record,
                                                           const audit_force_release& event) {
    ++found_.forced;
    lock_state* const lock = find(record.lock);
    if (lock != nullptr && lock->held && lock->token == event.token.value) {
        if (lock->session != session_of(record)) {
            return "it is told of another session than " + grant_of(*lock);
        }
        lock->forced = true;
        return std::nullopt;
    }
    const bool gap_since = gap_sequence_ > (lock != nullptr ? lock->sequence : 0);
    if (gap_since || is_from_before(lock, event.token.value)) {
        return std::nullopt;
    }
    return "no owner of lock " + quoted(record.lock) + " has " + token_text(event.token.value);
}

// Without older files: of a lock that none of these grants, and older than their tokens. (But for
// the moment by which threads may differ.)
bool audit_verifier::is_from_before(const lock_state* lock, std::uint64_t token) const {
    return allowed_.continued && lock == nullptr && !ends_from_before_.contains(token) &&
           (first_token_ == 0 || token < first_token_ + tokens_a_moment) && !is_known(token);
}

bool audit_verifier::is_known(std::uint64_t token) const noexcept {
    const auto at = std::lower_bound(recent_.begin(), recent_.end(), token, before<recent_token>);
    return at != recent_.end() && at->token == token;
}

// That so many records are missing is what the gaps before explain, if they lost as many.
audit_verifier::verdict audit_verifier::miss(std::uint64_t records, const std::string& why) {
    found_.missing += records;
    if (found_.missing > found_.lost) {
        return why + ", and the gaps before have lost only " + std::to_string(found_.lost);
    }
    return std::nullopt;
}

audit_verifier::verdict audit_verifier::note_token(lock_state& lock, std::uint64_t token) {
    const char* const order = files_.size() > 1 ? " (are the files in order, oldest first?)" : "";
    if (token == 0) {
        return "zero is never a token";
    }
    if (token <= lock.token) {
        return token_text(token) + " does not rise: " + grant_of(lock) + " came before" + order;
    }
    if (token <= floor_) {
        return token_text(token) + " does not rise: larger ones came long before" + order;
    }
    if (is_known(token)) {
        return token_text(token) + " is given twice";
    }
    const auto at = std::lower_bound(recent_.begin(), recent_.end(), token, before<recent_token>);
    recent_.insert(at, {.token = token, .of = &lock});
    first_token_ = first_token_ == 0 ? token : std::min(first_token_, token);
    lock.token = token;
    lock.where = here_;
    lock.sequence = found_.lines;
    return std::nullopt;
}

void audit_verifier::forget_old_tokens() {
    while (recent_.size() > reorder_max) {
        const recent_token oldest = recent_.front();
        recent_.pop_front();
        floor_ = oldest.token;
        forget_if_old(*oldest.of);
    }
}

// A lock that is free and whose tokens are all up to the floor needs no memory: whatever it gets
// next must be above, or is wrong for that.
void audit_verifier::forget_if_old(const lock_state& lock) {
    if (!lock.held && lock.token <= floor_) {
        locks_.erase(locks_.find(lock.name));
    }
}

void audit_verifier::end_held(lock_state& lock) noexcept {
    lock.held = false;
    open_.erase(open_.iterator_to(lock));
}

// The process that gave these grants is gone: none of them may be heard of again.
void audit_verifier::end_all_up_to(std::uint64_t sequence) {
    while (!open_.empty() && open_.front().sequence <= sequence) {
        lock_state& lock = open_.front();
        end_held(lock);
        forget_if_old(lock);
        ++found_.without_end;
    }
}

audit_verifier::lock_state& audit_verifier::make(std::string_view name) {
    const auto made = locks_.try_emplace(std::string{name}).first;
    made->second.name = made->first;
    return made->second;
}

audit_verifier::lock_state* audit_verifier::find(std::string_view name) {
    const auto found = locks_.find(name);
    return found == locks_.end() ? nullptr : &found->second;
}

}  // namespace monolock::telemetry
