// Events in any order, most of them records and some lines that are none, as a report, as two that
// share the time between them, and as one with room for little: what is counted must be what
// audit_stats counts, nothing may be counted twice or left out unsaid, and the bounds must hold.

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/json_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "telemetry/audit_report.hpp"
#include "telemetry/audit_stats.hpp"

namespace {

namespace telemetry = monolock::telemetry;
using monolock::fuzz::choices;
using monolock::fuzz::json_node;
using monolock::fuzz::json_oracle;
using monolock::fuzz::require;
using telemetry::wall_time;

constexpr std::array<std::string_view, 4> locks{"a", "b", "</script>\u2028", ""};
constexpr std::array<std::string_view, 4> people{"", "worker & son", "x\"\n\x01",
                                                 "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"};
constexpr std::array<std::string_view, 4> places{"10.0.0.1:99", "unix:pid=3,uid=4", "[::1]:5", ":"};

struct written_log {
    std::vector<std::string> lines;
    wall_time middle;  // the time of some record
};

telemetry::audit_event event_of(choices& input) {
    const std::uint8_t kind = input.next();
    const telemetry::audit_granted granted{.token = {input.next() % 4U + 1U},
                                           .wait = std::chrono::milliseconds{input.number(1)}};
    switch (kind % 8) {
        case 0:
            return telemetry::audit_denied{};
        case 1:
            return telemetry::audit_kick_waiter{};
        case 2:
            return telemetry::audit_force_release{.token = granted.token};
        case 3:
        case 4:
        case 5:
            return telemetry::audit_released{
                .token = granted.token,
                .held = std::chrono::milliseconds{input.number(kind < 128 ? 1 : 7)},
                .reason = telemetry::audit_lock_stats::reasons.at(kind / 8U % 4U)};
        default:
            return granted;
    }
}

// A step is a byte for the time, which may go back, one for who and where, and an event.
written_log log_of(choices& input) {
    written_log made;
    wall_time now{std::chrono::hours{24}};
    made.middle = now;
    while (input.any()) {
        const std::uint8_t step = input.next();
        now += std::chrono::milliseconds{static_cast<int>(step) - 32};
        const std::uint8_t who = input.next();
        std::string line;
        if (step == 0) {
            line = input.text(who % 16U);
        } else if (step == 1) {
            append_audit_line(line, telemetry::audit_gap{.time = now, .lost = who + 1U});
            line.pop_back();
        } else {
            append_audit_line(line,
                              telemetry::audit_record{.time = now,
                                                      .lock = locks.at(who % 4U),
                                                      .identity = people.at(who / 4U % 4U),
                                                      .remote_addr = places.at(who / 16U % 4U),
                                                      .event = event_of(input)});
            line.pop_back();
        }
        if (who >= 192) {
            made.middle = now;
        }
        made.lines.push_back(std::move(line));
    }
    return made;
}

json_node report_of(const written_log& of, telemetry::audit_report_filter filter,
                    telemetry::audit_report_limits limits) {
    telemetry::audit_report report{std::move(filter), limits};
    for (const std::string& line : of.lines) {
        static_cast<void>(report.take(line));
    }
    const std::string text = report.to_json();
    require(text.find_first_of("<>&\n") == std::string::npos);
    auto read = json_oracle::parse(text);
    require(read.has_value());
    return *std::move(read);
}

const json_node& in(const json_node& object, std::string_view key) {
    const json_node* const found = object.find(key);
    require(found != nullptr);
    return *found;
}

double number(const json_node& object, std::string_view key) {
    return in(object, key).number;
}

constexpr std::array<std::string_view, 7> counts{"grants", "graceful", "expired", "io_timeout",
                                                 "force",  "denied",   "kicked"};

void require_counts(const json_node& are, const telemetry::audit_lock_stats& should_be) {
    std::string text = "{";
    append_counts(text, should_be);
    const auto expected = json_oracle::parse(text + "}");
    for (const std::string_view each : counts) {
        require(number(are, each) == number(*expected, each));
    }
}

void check_whole(const written_log& of, const json_node& report) {
    telemetry::audit_stats stats;
    for (const std::string& line : of.lines) {
        static_cast<void>(stats.take(line));
    }
    require_counts(in(report, "total"), stats.total());
    require(number(report, "lost") == static_cast<double>(stats.lost()));
    require(number(report, "unreadable") == static_cast<double>(stats.unreadable()));
    require(in(report, "locks").items.size() == stats.locks().size());
    auto expected = stats.locks().begin();
    for (const json_node& lock : in(report, "locks").items) {
        require(in(lock, "lock").text == expected->first);
        require_counts(lock, expected->second);
        // Ownerships come one after the other, and those that are not the last have an end.
        const auto& ownerships = in(lock, "ownerships").items;
        for (std::size_t index = 0; index + 1 < ownerships.size(); ++index) {
            require(ownerships[index].items.at(1).what == json_node::kind::number);
        }
        ++expected;
    }
}

// Every record is within one of the two halves.
void check_halves(const written_log& of, const json_node& whole,
                  telemetry::audit_report_limits limits) {
    const json_node earlier =
        report_of(of, {.since = {}, .until = of.middle, .wants_lock = {}}, limits);
    const json_node later =
        report_of(of, {.since = of.middle, .until = {}, .wants_lock = {}}, limits);
    for (const std::string_view each : {"records", "lost"}) {
        require(number(earlier, each) + number(later, each) == number(whole, each));
    }
    for (const std::string_view each : counts) {
        require(number(in(earlier, "total"), each) + number(in(later, "total"), each) ==
                number(in(whole, "total"), each));
    }
}

void check_bounds(const json_node& small, telemetry::audit_report_limits limits,
                  const json_node& whole) {
    require(in(small, "locks").items.size() <= limits.locks_max);
    require(in(small, "owners").items.size() <= limits.owners_max + 1);
    require(in(small, "incidents").items.size() <= limits.incidents_max);
    require(number(small, "incidents_forgotten") +
                static_cast<double>(in(small, "incidents").items.size()) ==
            number(whole, "incidents_forgotten") +
                static_cast<double>(in(whole, "incidents").items.size()));
    for (const std::string_view each : counts) {
        double sum = number(in(small, "others"), each);
        for (const json_node& lock : in(small, "locks").items) {
            sum += number(lock, each);
        }
        require(sum == number(in(small, "total"), each));
        require(sum == number(in(whole, "total"), each));
    }
    for (const json_node& lock : in(small, "locks").items) {
        require(in(lock, "ownerships").items.size() <= limits.ownerships_max);
        for (const json_node& ownership : in(lock, "ownerships").items) {
            require(ownership.items.at(5).number <
                    static_cast<double>(in(small, "owners").items.size()));
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    choices input{data, size};
    const telemetry::audit_report_limits little{.locks_max = input.next() % 3U + 1U,
                                                .ownerships_max = input.next() % 3U + 1U,
                                                .owners_max = input.next() % 3U + 1U,
                                                .owner_bytes_max = 5,
                                                .incidents_max = 2};
    const written_log made = log_of(input);
    const json_node whole = report_of(made, {}, {});
    check_whole(made, whole);
    check_halves(made, whole, {});
    check_bounds(report_of(made, {}, little), little, whole);
    return 0;
}
