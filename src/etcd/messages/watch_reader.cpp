#include "etcd/messages/watch_reader.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "etcd/messages/fields.hpp"
#include "etcd/messages/json_reader.hpp"

namespace monolock::etcd {

namespace {

using coordination::revision;
using coordination::watch_event;

// Protobuf leaves out the first value of an enum, and some writers of JSON prefer its number.
bool is_deletion(const json& event) {
    const json* const type = find(event, "type");
    if (type == nullptr || *type == "PUT" || *type == 0) {
        return false;
    }
    if (*type == "DELETE" || *type == 1) {
        return true;
    }
    throw odd_message{"an event that is neither a put nor a deletion"};
}

watch_event event_in(const json& told, const key_names& keys) {
    if (!told.is_object()) {
        throw odd_message{"an event that is no object"};
    }
    const json& entry = key_value_in(object_at(told, "kv"), keys.active);
    if (is_deletion(told)) {
        return coordination::active_deleted{revision_at(entry, "mod_revision")};
    }
    return coordination::active_put{active_entry_in(entry, keys)};
}

revision revision_of(const watch_event& event) {
    if (const auto* const put = std::get_if<coordination::active_put>(&event)) {
        return put->entry.modified;
    }
    return std::get<coordination::active_deleted>(event).at;
}

// Why etcd ended a watch, if the message says so. The reason is a status of gRPC in words.
struct cancellation {
    std::string why;
    verdict of_endpoint = verdict::keep;
};
std::optional<cancellation> cancellation_in(const json& message) {
    if (const auto compacted = int64_at(message, "compact_revision"); compacted != 0) {
        return cancellation{"etcd has compacted its history up to revision " +
                            std::to_string(compacted)};
    }
    if (!bool_at(message, "canceled")) {
        return std::nullopt;
    }
    const std::string reason = text_at(message, "cancel_reason");
    const bool about_token = store_error{.code = 0, .message = reason}.is_about_token() ||
                             reason.find("invalid auth token") != std::string::npos;
    return cancellation{"etcd cancelled it: " + one_line(reason.empty() ? "no reason" : reason),
                        about_token ? verdict::stale_token : verdict::move_on};
}

}  // namespace

watch_reader::watch_reader(key_names keys, revision from)
    : keys_{std::move(keys)}, from_{from}, next_{from.value - 1} {}

void watch_reader::take(std::string_view bytes, std::vector<watch_event>& out) {
    while (state_ != state::broken && !bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        if (piece.size() > answer_bytes_max - line_.size()) {
            break_off("a message that is too long", out);
            return;
        }
        line_ += piece;
        if (end == std::string_view::npos) {
            return;
        }
        bytes.remove_prefix(end + 1);
        take_line(std::exchange(line_, {}), out);
    }
}

void watch_reader::end(std::vector<watch_event>& out) {
    if (json::accept(line_)) {
        take_line(std::exchange(line_, {}), out);
    }
    break_off("its stream ended", out);
}

void watch_reader::break_off(const std::string& why, std::vector<watch_event>& out) {
    if (std::exchange(state_, state::broken) != state::broken) {
        line_ = {};
        out.emplace_back(coordination::watch_broken{"the watch broke off: " + why});
    }
}

// What comes before the odd part of a message is told: it happened.
void watch_reader::take_line(std::string_view line, std::vector<watch_event>& out) {
    try {
        const json document = parse_object(line);
        if (find(document, "error") != nullptr) {
            const failure why = failure_of(error_in(document));
            of_endpoint_ = why.of_endpoint;
            return break_off(why.why, out);
        }
        const json& message = object_at(document, "result");
        if (const auto cancelled = cancellation_in(message)) {
            of_endpoint_ = cancelled->of_endpoint;
            return break_off(cancelled->why, out);
        }
        if (bool_at(message, "created")) {
            state_ = state::running;
        }
        for (const json& each : list_at(message, "events")) {
            watch_event event = event_in(each, keys_);
            const revision at = revision_of(event);
            if (at < next_) {
                throw odd_message{"an event that is older than the one before it"};
            }
            next_ = {at.value + 1};
            if (at >= from_) {
                out.push_back(std::move(event));
            }
        }
    } catch (const odd_message& odd) {
        break_off("an odd message: " + odd.why, out);
    }
}

}  // namespace monolock::etcd
