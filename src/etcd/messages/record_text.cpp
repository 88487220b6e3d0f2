#include "etcd/messages/record_text.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/number.hpp"
#include "etcd/messages/json_reader.hpp"

namespace monolock::etcd {

namespace {

using coordination::active_record;
using coordination::state_record;
using std::chrono::milliseconds;

constexpr const char* format = "1";

template <std::integral Number>
Number number_at(const json& object, const char* key, Number least, Number most) {
    const json* const value = find(object, key);
    if (value == nullptr || !value->is_string()) {
        throw odd_message{std::string{"\""} + key + "\" is missing or no text"};
    }
    const auto number = config::parse_number<Number>(value->get_ref<const std::string&>());
    if (!number || *number < least || *number > most) {
        throw odd_message{std::string{"\""} + key + "\" is no number, or out of range"};
    }
    return *number;
}

template <std::integral Number>
Number number_at(const json& object, const char* key, Number least) {
    return number_at(object, key, least, std::numeric_limits<Number>::max());
}

milliseconds duration_at(const json& object, const char* key, milliseconds least) {
    return milliseconds{
        number_at<milliseconds::rep>(object, key, least.count(), record_duration_max.count())};
}

std::string name_at(const json& object) {
    const json* const value = find(object, "name");
    if (value == nullptr || !value->is_string()) {
        throw odd_message{"\"name\" is missing or no text"};
    }
    return value->get<std::string>();
}

json parse_record(std::string_view text) {
    json object = parse_object(text);
    const json* const written = find(object, "format");
    if (written == nullptr || *written != format) {
        throw odd_message{"it is of another format"};
    }
    return object;
}

// Not indented, and with U+FFFD for what is no UTF-8.
std::string dump(const json& object) {
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string to_text(const active_record& record) {
    return dump({{"format", format},
                 {"name", record.name},
                 {"ttl_ms", std::to_string(record.ttl.count())},
                 {"sequence", std::to_string(record.sequence)}});
}

std::string to_text(const state_record& record) {
    return dump({{"format", format},
                 {"ceiling", std::to_string(record.ceiling)},
                 {"longest_lease_ms", std::to_string(record.longest_lease.count())},
                 {"name", record.name},
                 {"ttl_ms", std::to_string(record.ttl.count())},
                 {"written_in", std::to_string(record.written_in.value)},
                 {"sequence", std::to_string(record.sequence)},
                 {"resigned", record.resigned}});
}

config::parsed<active_record> read_active_record(std::string_view text) {
    try {
        const json object = parse_record(text);
        return active_record{.name = name_at(object),
                             .ttl = duration_at(object, "ttl_ms", milliseconds{1}),
                             .sequence = number_at<std::uint64_t>(object, "sequence", 0)};
    } catch (const odd_message& odd) {
        return config::diagnostic{odd.why};
    }
}

config::parsed<state_record> read_state_record(std::string_view text) {
    try {
        const json object = parse_record(text);
        if (find(object, "resigned") == nullptr) {
            throw odd_message{"\"resigned\" is missing"};
        }
        return state_record{
            .ceiling = number_at<std::uint64_t>(object, "ceiling", 0, record_ceiling_max),
            .longest_lease = duration_at(object, "longest_lease_ms", milliseconds{0}),
            .name = name_at(object),
            .ttl = duration_at(object, "ttl_ms", milliseconds{1}),
            .written_in = {number_at<std::int64_t>(object, "written_in", 1)},
            .sequence = number_at<std::uint64_t>(object, "sequence", 0),
            .resigned = bool_at(object, "resigned")};
    } catch (const odd_message& odd) {
        return config::diagnostic{odd.why};
    }
}

}  // namespace monolock::etcd
