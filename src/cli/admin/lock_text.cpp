#include "cli/admin/lock_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/age.hpp"
#include "cli/colour.hpp"
#include "cli/table.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using std::chrono::milliseconds;

constexpr table::column right(std::string_view heading) noexcept {
    return {.heading = heading, .side = table::align::right};
}

// An owner beats every quarter of its lease; one that has missed a beat is worth a look.
colour paint_of_silence(const holder_facts& holder) noexcept {
    return holder.silent > holder.lease * 3 / 4 ? colour::red
           : holder.silent > holder.lease / 2   ? colour::yellow
                                                : colour::plain;
}

std::string who(const claim_facts& claim) {
    return word(claim.remote_addr) +
           (claim.identity.empty() ? "" : " (" + word(claim.identity) + ")");
}

// Only under mutual TLS has anybody an identity, so often the column is left out.
template <class Claims>
bool has_identity(const Claims& claims) {
    return std::ranges::any_of(
        claims, [](const claim_facts* each) { return each != nullptr && !each->identity.empty(); });
}

std::string queue_text(const std::vector<waiter_facts>& waiters, bool coloured) {
    std::vector<const claim_facts*> claims;
    claims.reserve(waiters.size());
    for (const waiter_facts& each : waiters) {
        claims.push_back(&each);
    }
    const bool identities = has_identity(claims);
    std::vector<table::column> columns{right("#"), {.heading = "WAITER"}};
    if (identities) {
        columns.push_back({.heading = "IDENTITY"});
    }
    for (const std::string_view heading : {"WAITED", "LEASE", "ID"}) {
        columns.push_back(right(heading));
    }
    table rows{std::move(columns)};
    std::size_t place = 0;
    for (const waiter_facts& each : waiters) {
        table::row cells;
        cells.emplace_back(std::to_string(++place));
        cells.emplace_back(word(each.remote_addr));
        if (identities) {
            cells.emplace_back(each.identity.empty() ? "-" : word(each.identity));
        }
        cells.emplace_back(format_age(each.waited));
        cells.emplace_back(format_age(each.lease));
        cells.emplace_back(std::to_string(each.id));
        rows.add(std::move(cells));
    }
    return rows.text(coloured);
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

using named_values = std::vector<std::pair<std::string, std::string>>;

void append_value(named_values& out, const std::string& key, const json& value) {
    if (key.ends_with("_ms") && value.is_number_unsigned()) {
        const auto count = static_cast<std::int64_t>(value.get<std::uint64_t>());
        out.emplace_back(key.substr(0, key.size() - 3),
                         format_age(std::max(milliseconds{count}, milliseconds{0})));
    } else if (value.is_boolean()) {
        out.emplace_back(key, value.get<bool>() ? "yes" : "no");
    } else if (value.is_string()) {
        const auto text = value.get<std::string>();
        out.emplace_back(key, text.empty() ? "-" : word(text));
    } else {
        out.emplace_back(key, word(value.dump(-1, ' ', true, json::error_handler_t::replace)));
    }
}

named_values values_of(const json& info) {
    named_values out;
    for (const auto& [key, value] : info.items()) {
        if (!value.is_object()) {
            append_value(out, word(key), value);
            continue;
        }
        for (const auto& [inner_key, inner] : value.items()) {
            append_value(out, word(inner_key), inner);
        }
    }
    return out;
}

}  // namespace

std::string word(std::string_view text) {
    std::string out;
    telemetry::append_logfmt_value(out, text);
    return out;
}

std::string locks_text(const std::vector<lock_facts>& locks, bool coloured) {
    std::vector<const claim_facts*> claims;
    claims.reserve(locks.size());
    for (const lock_facts& each : locks) {
        claims.push_back(each.holder ? &*each.holder : nullptr);
    }
    const bool identities = has_identity(claims);
    std::vector<table::column> columns{{.heading = "LOCK"}, {.heading = "OWNER"}};
    if (identities) {
        columns.push_back({.heading = "IDENTITY"});
    }
    for (const std::string_view heading : {"HELD", "SILENT", "LEASE", "WAITING", "TOKEN"}) {
        columns.push_back(right(heading));
    }
    table rows{std::move(columns)};
    for (const lock_facts& each : locks) {
        table::row cells;
        cells.emplace_back(word(each.name));
        const auto add = [&](auto text_of_holder, colour paint = colour::plain) {
            cells.emplace_back(each.holder ? text_of_holder(*each.holder) : "-", paint);
        };
        add([](const holder_facts& holder) { return word(holder.remote_addr); });
        if (identities) {
            add([](const holder_facts& holder) {
                return holder.identity.empty() ? "-" : word(holder.identity);
            });
        }
        add([](const holder_facts& holder) { return format_age(holder.held); });
        add([](const holder_facts& holder) { return format_age(holder.silent); },
            each.holder ? paint_of_silence(*each.holder) : colour::plain);
        add([](const holder_facts& holder) { return format_age(holder.lease); });
        cells.emplace_back(std::to_string(each.waiters_total));
        add([](const holder_facts& holder) { return std::to_string(holder.token); });
        rows.add(std::move(cells));
    }
    return rows.text(coloured);
}

std::string no_locks_text(const std::optional<std::string>& match) {
    return match ? "no lock matches " + telemetry::quoted(*match) + "\n" : "no lock is held\n";
}

std::string lock_text(const lock_facts& lock, bool coloured) {
    std::string out = "lock " + word(lock.name);
    out += lock.holder ? ", held by " + describe(*lock.holder)
                       : ", not held: the server shuts down, or its grant delay is not over";
    out += "\n" + count_waiters(lock.waiters_total) + "\n";
    if (!lock.waiters.empty()) {
        out += "\n" + queue_text(lock.waiters, coloured);
    }
    return out;
}

std::string describe(const holder_facts& holder) {
    return who(holder) + ", id " + std::to_string(holder.id) + ", for " + format_age(holder.held) +
           ", token " + std::to_string(holder.token) + ", silent for " + format_age(holder.silent) +
           " of a lease of " + format_age(holder.lease);
}

std::string describe(const waiter_facts& waiter) {
    return who(waiter) + ", id " + std::to_string(waiter.id) + ", for " + format_age(waiter.waited);
}

std::string count_waiters(std::uint64_t count) {
    return count == 0 ? "nobody waits" : std::to_string(count) + (count == 1 ? " waits" : " wait");
}

std::string owner_and_place(const lock_facts& lock, const std::vector<std::string>& own_names) {
    std::string out{nobody_holds_it};
    if (lock.holder) {
        out = "held by " + who(*lock.holder) + " since " + word(lock.holder->since) + " (" +
              format_age(lock.holder->held) + "), token " + std::to_string(lock.holder->token);
    }
    const auto ours = std::ranges::find_if(lock.waiters, [&](const waiter_facts& each) {
        return std::ranges::find(own_names, each.remote_addr) != own_names.end();
    });
    if (ours == lock.waiters.end()) {
        return out + "; " + count_waiters(lock.waiters_total);
    }
    return out + "; number " + std::to_string(ours - lock.waiters.begin() + 1) + " of " +
           std::to_string(lock.waiters_total) + " in the queue";
}

std::string info_text(const json& info) {
    const named_values lines = values_of(info);
    std::size_t width = 0;
    for (const auto& [key, value] : lines) {
        width = std::max(width, key.size());
    }
    std::string out;
    for (const auto& [key, value] : lines) {
        out += padded(key, width) + "  " + value + "\n";
    }
    return out;
}

std::string summary(const json& info) {
    std::string out;
    for (const auto& [key, value] : values_of(info)) {
        if (key == "locks" || key == "sessions") {
            const std::string_view noun{key};
            out += (out.empty() ? "" : ", ") + value + " ";
            out += value == "1" ? noun.substr(0, noun.size() - 1) : noun;
        } else if (key == "uptime") {
            out += (out.empty() ? "up " : ", up ") + value;
        }
    }
    return out;
}

std::string change_text(const change_facts& change, bool coloured) {
    const bool granted = change.event == "granted";
    std::string out = word(change.time) + "  " + padded(word(change.event), 8) + "  " +
                      word(change.name) + "  token=" + std::to_string(change.token) +
                      (granted ? " waited=" : " held=") + format_age(change.lasted);
    out += granted ? "" : " " + word(change.reason);
    out += "  " + word(change.remote_addr);
    out += change.identity.empty() ? "" : " " + word(change.identity);
    const colour paint = granted || change.reason == "graceful" ? colour::plain : colour::yellow;
    if (coloured) {
        out.insert(0, begin_of(paint));
        out += end_of(paint);
    }
    return out + "\n";
}

std::string held_text(const lock_facts& lock) {
    if (!lock.holder) {
        return "";
    }
    const holder_facts& holder = *lock.holder;
    std::string out = word(holder.since) + "  " + padded("held", 8) + "  " + word(lock.name) +
                      "  token=" + std::to_string(holder.token) +
                      " held=" + format_age(holder.held) + "  " + word(holder.remote_addr);
    out += holder.identity.empty() ? "" : " " + word(holder.identity);
    return out + "\n";
}

}  // namespace monolock::cli
