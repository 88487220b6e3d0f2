#include "history/recording.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace monolock::history {

namespace {

using nlohmann::json;

// The keys besides t and kind.
enum class field : std::uint8_t { worker, claim, lock, lease, token, until, why, wall };
constexpr std::array field_names{"worker", "claim", "lock", "lease_ns",
                                 "token",  "until", "why",  "wall_clock_right"};

constexpr std::uint32_t bit(field one) {
    return 1U << static_cast<unsigned>(one);
}

// Which fields a kind has. The writer and the reader both go by this.
constexpr std::uint32_t fields_of(kind what) {
    constexpr std::uint32_t claim = bit(field::worker) | bit(field::claim);
    switch (what) {
        case kind::ask:
            return claim | bit(field::lock) | bit(field::lease);
        case kind::grant:
            return claim | bit(field::token) | bit(field::until);
        case kind::confirmed:
            return claim | bit(field::until);
        case kind::loss:
            return claim | bit(field::why);
        case kind::waiting:
        case kind::act:
        case kind::end:
        case kind::closed:
            return claim;
        case kind::near:
        case kind::paused:
        case kind::resumed:
        case kind::killed:
        case kind::silent:
        case kind::heard:
        case kind::resetting:
        case kind::reset_over:
            return bit(field::worker);
        case kind::forcing:
        case kind::forced_over:
            return bit(field::lock);
        case kind::server_started:
            return bit(field::wall);
        case kind::server_down:
        case kind::server_paused:
        case kind::server_serves:
        case kind::calm:
        case kind::finish:
            return 0;
    }
    return 0;
}

constexpr bool has(kind what, field one) {
    return (fields_of(what) & bit(one)) != 0;
}

[[noreturn]] void refuse(const std::string& why) {
    throw malformed{why};
}

const json& value_of(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) {
        refuse(std::string{"no "} + key);
    }
    return *found;
}

template <typename Number>
Number number_in(const json& object, const char* key) {
    const json& value = value_of(object, key);
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) {
        refuse(std::string{key} + " is not a number that it can be");
    }
    return value.get<Number>();
}

instant instant_in(const json& object, const char* key) {
    return instant{number_in<instant::rep>(object, key)};
}

instant milliseconds_in(const json& object, const char* key) {
    return std::chrono::milliseconds{number_in<std::uint32_t>(object, key)};
}

std::string text_in(const json& object, const char* key) {
    const json& value = value_of(object, key);
    if (!value.is_string()) {
        refuse(std::string{key} + " is not a string");
    }
    return value.get<std::string>();
}

bool truth_in(const json& object, const char* key) {
    const json& value = value_of(object, key);
    if (!value.is_boolean()) {
        refuse(std::string{key} + " is neither true nor false");
    }
    return value.get<bool>();
}

template <typename Enum, std::size_t Count>
Enum named(const std::string& name, const char* what) {
    for (std::size_t at = 0; at < Count; ++at) {
        if (to_string(static_cast<Enum>(at)) == name) {
            return static_cast<Enum>(at);
        }
    }
    refuse("unknown " + std::string{what} + ": " + name);
}

// An object in which no key stands twice.
json parse(std::string_view line) {
    std::size_t keys = 0;
    const auto count = [&keys](int /*depth*/, json::parse_event_t event, json& /*value*/) {
        keys += event == json::parse_event_t::key ? 1U : 0U;
        return true;
    };
    json object = json::parse(line, count, /*allow_exceptions=*/false);
    if (!object.is_object()) {
        refuse("not a JSON object");
    }
    if (keys != object.size()) {
        refuse("a key twice, or an object within");
    }
    return object;
}

void expect_keys(const json& object, std::size_t count) {
    if (object.size() != count) {
        refuse("a key that its kind does not have");
    }
}

}  // namespace

std::string to_line(const event& what, std::string_view lock_name) {
    nlohmann::ordered_json line{{"t", what.at.count()}, {"kind", to_string(what.what)}};
    const auto put = [&](field one, const auto& value) {
        if (has(what.what, one)) {
            line[field_names.at(static_cast<std::size_t>(one))] = value;
        }
    };
    put(field::worker, what.claim.worker);
    put(field::claim, what.claim.number);
    put(field::lock, lock_name);
    put(field::lease, what.lease.count());
    put(field::token, what.token);
    put(field::until, what.until.count());
    put(field::why, to_string(what.why));
    put(field::wall, what.wall_clock_right);
    return line.dump() + '\n';
}

void recording_reader::read(std::string_view text, std::string_view file_name) {
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            ++read_.torn_lines;
            return;
        }
        try {
            read_line(text.substr(0, end));
        } catch (const malformed& why) {
            throw malformed{std::string{file_name} + ":" + std::to_string(number) + ": " +
                            why.what()};
        }
        text.remove_prefix(end + 1);
    }
}

void recording_reader::read_line(std::string_view line) {
    const json object = parse(line);
    const std::string name = text_in(object, "kind");
    if (name == "setup") {
        if (std::exchange(read_.has_setup, true)) {
            refuse("a second setup");
        }
        read_.scenario = text_in(object, "scenario");
        read_.seed = number_in<std::uint64_t>(object, "seed");
        read_.limits = {.handover_max = milliseconds_in(object, "handover_ms"),
                        .silence_slack = milliseconds_in(object, "slack_ms"),
                        .served_within = milliseconds_in(object, "served_ms"),
                        .causes_noted = truth_in(object, "causes_noted"),
                        .faults_noted = truth_in(object, "faults_noted")};
        expect_keys(object, 8);
        return;
    }
    event what;
    what.what = named<kind, kinds>(name, "kind");
    what.at = instant_in(object, "t");
    std::size_t keys = 2;
    for (std::size_t at = 0; at < field_names.size(); ++at) {
        const auto one = static_cast<field>(at);
        if (!has(what.what, one)) {
            continue;
        }
        ++keys;
        const char* const key = field_names.at(at);
        switch (one) {
            case field::worker:
                what.claim.worker = number_in<std::uint32_t>(object, key);
                break;
            case field::claim:
                what.claim.number = number_in<std::uint32_t>(object, key);
                break;
            case field::lock:
                what.lock = number_of(text_in(object, key));
                break;
            case field::lease:
                what.lease = instant_in(object, key);
                break;
            case field::token:
                what.token = number_in<std::uint64_t>(object, key);
                break;
            case field::until:
                what.until = instant_in(object, key);
                break;
            case field::why:
                what.why = named<reason, reasons>(text_in(object, key), "reason");
                break;
            case field::wall:
                what.wall_clock_right = truth_in(object, key);
                break;
        }
    }
    expect_keys(object, keys);
    read_.events.push_back(what);
}

std::uint32_t recording_reader::number_of(const std::string& lock_name) {
    auto& names = read_.lock_names;
    const auto found = std::find(names.begin(), names.end(), lock_name);
    if (found == names.end()) {
        names.push_back(lock_name);
        return static_cast<std::uint32_t>(names.size() - 1);
    }
    return static_cast<std::uint32_t>(found - names.begin());
}

recording recording_reader::take() {
    std::stable_sort(read_.events.begin(), read_.events.end(),
                     [](const event& left, const event& right) { return left.at < right.at; });
    return std::exchange(read_, {});
}

}  // namespace monolock::history
