// Whatever etcd, or who stands in its place, answers: what is accepted says what another reader of
// JSON finds in it, and nothing that could not be; all else is a failure in one clean line. A watch
// tells the same however its bytes come. A record reads the same again once written.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "etcd/messages/answers.hpp"
#include "etcd/messages/calls.hpp"
#include "etcd/messages/record_text.hpp"
#include "etcd/messages/user_file.hpp"
#include "etcd/messages/watch_reader.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/json_oracle.hpp"
#include "fuzz/pieces.hpp"

namespace {

namespace etcd = monolock::etcd;
namespace coordination = monolock::coordination;
namespace fuzz = monolock::fuzz;
using fuzz::json_node;
using fuzz::require;

const etcd::key_names keys{"/m/"};

constexpr std::int64_t mine = 17;
constexpr std::int64_t known = 20;
constexpr std::int64_t lease = 7;

void require_line(std::string_view why) {
    require(!why.empty() && why.size() <= etcd::why_bytes_max);
    require(std::ranges::all_of(why, [](char byte) { return byte >= ' ' && byte <= '~'; }));
}

// --- the other reader

// The member at the end of a path; null if one of them is missing or there twice.
const json_node* at(const json_node* from, std::initializer_list<const char*> path) {
    for (const char* const name : path) {
        from = from == nullptr ? nullptr : from->find(name);
    }
    return from;
}
const json_node* item(const json_node* list, std::size_t index) {
    return list != nullptr && index < list->items.size() ? &list->items[index] : nullptr;
}

// A number that was written as text is that text; one that was not, the oracle does not keep.
void require_number(const json_node* node, std::int64_t value) {
    require(node != nullptr);
    if (node->what == json_node::kind::string) {
        char* end = nullptr;
        require(!node->text.empty() && std::strtoll(node->text.c_str(), &end, 10) == value);
        require(*end == '\0');
    } else {
        require(node->what == json_node::kind::number);
    }
}

std::optional<std::string> from_base64(std::string_view text) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::string_view sure = text.substr(0, text.find('='));
    std::uint32_t bits = 0;
    unsigned count = 0;
    std::string bytes;
    for (const char letter : sure) {
        const std::size_t value = letters.find(letter);
        if (value == std::string_view::npos) {
            return std::nullopt;
        }
        bits = bits << 6U | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes += static_cast<char>(bits >> count & 0xFFU);
        }
    }
    return text.size() % 4 == 0 ? std::optional{bytes} : std::nullopt;
}

void require_text(const json_node* node, const std::string& text) {
    require(node != nullptr && node->what == json_node::kind::string && node->text == text);
}

void require_record(const std::string& text, const coordination::active_record& record) {
    const auto written = fuzz::json_oracle::parse(text);
    require(written.has_value());
    require_text(at(&*written, {"format"}), "1");
    require_text(at(&*written, {"name"}), record.name);
    require_number(at(&*written, {"ttl_ms"}), record.ttl.count());
    require(at(&*written, {"sequence"})->what == json_node::kind::string);
    require(record.ttl.count() > 0 && record.ttl <= etcd::record_duration_max);
    const auto again = etcd::read_active_record(etcd::to_text(record));
    require(again && *again == record);
}
void require_record(const std::string& text, const coordination::state_record& record) {
    const auto written = fuzz::json_oracle::parse(text);
    require(written.has_value());
    require_text(at(&*written, {"format"}), "1");
    require_text(at(&*written, {"name"}), record.name);
    require_number(at(&*written, {"ttl_ms"}), record.ttl.count());
    require_number(at(&*written, {"longest_lease_ms"}), record.longest_lease.count());
    require_number(at(&*written, {"written_in"}), record.written_in.value);
    require(at(&*written, {"resigned"})->what == json_node::kind::boolean);
    require(record.ttl.count() > 0 && record.ttl <= etcd::record_duration_max);
    require(record.longest_lease.count() >= 0 && record.longest_lease <= etcd::record_duration_max);
    require(record.written_in.value > 0);
    const auto again = etcd::read_state_record(etcd::to_text(record));
    require(again && *again == record);
}

// Whoever has the key goes by its revisions, whatever somebody has written there.
enum class reader_is : std::uint8_t { standby, holder };

void require_entry(const json_node* kv, const coordination::active_entry& entry, reader_is whose) {
    require_text(at(kv, {"key"}), keys.active);
    require_number(at(kv, {"create_revision"}), entry.created.value);
    require_number(at(kv, {"mod_revision"}), entry.modified.value);
    require(entry.created.value > 0 && entry.created <= entry.modified);
    const json_node* const value = at(kv, {"value"});
    const bool is_empty = value == nullptr || value->what == json_node::kind::null;
    require(is_empty ? whose == reader_is::holder : value->what == json_node::kind::string);
    const auto text = is_empty ? std::optional{std::string{}} : from_base64(value->text);
    require(text.has_value());
    if (whose == reader_is::holder && !etcd::read_active_record(*text)) {
        return require(entry.value.ttl.count() == 0 && entry.value.sequence == 0);
    }
    require_record(*text, entry.value);
}
void require_entry(const json_node* range, const std::optional<coordination::active_entry>& entry,
                   std::int64_t as_of, reader_is whose = reader_is::standby) {
    const json_node* const kvs = at(range, {"kvs"});
    require(entry.has_value() == (kvs != nullptr && kvs->items.size() == 1));
    if (entry) {
        require(entry->modified.value <= as_of);
        require_entry(item(kvs, 0), *entry, whose);
    }
}

// --- answers

struct judge {
    const json_node& body;

    [[nodiscard]] std::int64_t revision() const {
        const json_node* const node = at(&body, {"header", "revision"});
        require(node != nullptr);
        return node->what == json_node::kind::string ? std::strtoll(node->text.c_str(), nullptr, 10)
                                                     : std::int64_t{1} << 62U;
    }
    [[nodiscard]] const json_node* response(std::size_t index, const char* kind) const {
        return at(item(at(&body, {"responses"}), index), {kind});
    }
    void require_responses(std::initializer_list<const char*> kinds) const {
        std::size_t index = 0;
        for (const char* const kind : kinds) {
            require(response(index++, kind) != nullptr);
        }
        require(at(&body, {"responses"})->items.size() == index);
    }

    void operator()(const coordination::failed&) const { require(false); }
    void operator()(const coordination::lease_granted& what) const {
        require_number(at(&body, {"ID"}), what.lease.value);
        require_number(at(&body, {"TTL"}), what.ttl.count());
        require(what.lease.value > 0 && what.ttl.count() > 0);
    }
    void operator()(const coordination::lease_kept& what) const {
        require_number(at(&body, {"result", "ID"}), lease);
        require(what.ttl.count() >= 0);
        if (what.ttl.count() > 0) {
            require_number(at(&body, {"result", "TTL"}), what.ttl.count());
        }
    }
    void operator()(const coordination::lease_revoked&) const { require(revision() > 0); }
    void operator()(const coordination::seen& what) const {
        require_number(at(&body, {"header", "revision"}), what.as_of.value);
        require_entry(&body, what.active, what.as_of.value);
    }
    void operator()(const coordination::campaigned& what) const {
        require(what.won == (at(&body, {"succeeded"}) != nullptr && !what.active));
        if (!what.won) {
            require_responses({"response_range"});
            require(what.active.has_value());
            return require_entry(response(0, "response_range"), what.active, revision());
        }
        require_number(at(&body, {"header", "revision"}), what.at.value);
        require_responses({"response_put", "response_range"});
        const json_node* const kvs = at(response(1, "response_range"), {"kvs"});
        require(what.state.has_value() == (kvs != nullptr && kvs->items.size() == 1));
        if (what.state) {
            require_text(at(item(kvs, 0), {"key"}), keys.state);
            const auto text = from_base64(at(item(kvs, 0), {"value"})->text);
            require(text.has_value());
            require_record(*text, *what.state);
        }
    }
    void operator()(const coordination::renewed& what) const {
        if (what.done) {
            require(at(&body, {"succeeded"}) != nullptr && what.at.value > known);
            require_number(at(&body, {"header", "revision"}), what.at.value);
            return require_responses({"response_put", "response_put"});
        }
        require_not_done(what.active);
    }
    void operator()(const coordination::resigned& what) const {
        if (what.done) {
            return require_responses({"response_put", "response_delete_range"});
        }
        require_not_done(what.active);
    }

private:
    void require_not_done(const std::optional<coordination::active_entry>& active) const {
        require_responses({"response_range"});
        require_entry(response(0, "response_range"), active, revision(), reader_is::holder);
        require(!active || active->created.value != mine || active->modified.value != known);
    }
};

void judge_answer(const coordination::request& asked, const etcd::reply& from) {
    const etcd::reading read = etcd::read_answer(asked, keys, from);
    if (const auto* const why = std::get_if<coordination::failed>(&read.what)) {
        return require_line(why->why);
    }
    if (from.status != etcd::status_ok) {
        return require(std::holds_alternative<coordination::lease_revoked>(read.what));
    }
    require(read.of_endpoint == etcd::verdict::keep);
    const auto body = fuzz::json_oracle::parse(from.body);
    require(body.has_value() && body->what == json_node::kind::object);
    std::visit(judge{*body}, read.what);
}

// --- the rest

std::vector<coordination::watch_event> watch(const fuzz::cut_input& input, bool in_pieces) {
    etcd::watch_reader reader{keys, {5}};
    std::vector<coordination::watch_event> told;
    input.feed(in_pieces, [&](fuzz::bytes piece) {
        reader.take(fuzz::cut_input::text_of(piece), told);
        return true;
    });
    reader.end(told);
    require(reader.where() == etcd::watch_reader::state::broken);
    return told;
}

void judge_watch(const fuzz::cut_input& input) {
    const auto whole = watch(input, false);
    const auto pieces = watch(input, true);
    require(!whole.empty() && whole.size() == pieces.size());
    std::int64_t last = 4;
    for (std::size_t index = 0; index < whole.size(); ++index) {
        require(whole[index].index() == pieces[index].index());
        const auto* const broken = std::get_if<coordination::watch_broken>(&whole[index]);
        require((broken != nullptr) == (index + 1 == whole.size()));
        if (broken != nullptr) {
            require_line(broken->why);
            require(broken->why == std::get<coordination::watch_broken>(pieces[index]).why);
            break;
        }
        const auto* const put = std::get_if<coordination::active_put>(&whole[index]);
        const std::int64_t now =
            put != nullptr ? put->entry.modified.value
                           : std::get<coordination::active_deleted>(whole[index]).at.value;
        require(now > last);
        last = now;
        if (put != nullptr) {
            require(put->entry == std::get<coordination::active_put>(pieces[index]).entry);
            require(put->entry.created <= put->entry.modified && put->entry.value.ttl.count() > 0);
        }
    }
}

void judge_token(const etcd::reply& from) {
    const etcd::token_reading read = etcd::read_token(from);
    if (!read.token) {
        return require_line(read.why.why);
    }
    require(std::ranges::all_of(*read.token, [](char byte) { return byte > ' ' && byte <= '~'; }));
    if (from.status == etcd::status_ok) {
        const auto body = fuzz::json_oracle::parse(from.body);
        require(body.has_value() && !read.token->empty());
        require_text(at(&*body, {"token"}), *read.token);
    }
}

void judge_records(const std::string& text) {
    if (const auto record = etcd::read_active_record(text)) {
        require_record(text, *record);
    }
    if (const auto record = etcd::read_state_record(text)) {
        require_record(text, *record);
    }
}

void judge_user_file(std::string_view text) {
    if (const auto who = etcd::parse_user_file(text)) {
        require(!who->user.empty() && !who->password.empty());
        const std::string line = who->user + ":" + who->password;
        require(text.substr(0, line.size()) == line && text.size() <= line.size() + 2);
        const auto call = fuzz::json_oracle::parse(etcd::authenticate_call(*who).body);
        require(call.has_value());
        require_text(at(&*call, {"name"}), who->user);
        require_text(at(&*call, {"password"}), who->password);
    }
}

// Base64 is no field for a fuzzer: what stands behind the last NUL is put, so encoded, in place of
// each dollar before it.
std::string with_values(std::string_view text) {
    constexpr std::string_view letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t end = text.rfind('\0');
    std::string value;
    if (end != std::string_view::npos) {
        std::string_view rest = text.substr(end + 1);
        for (; !rest.empty(); rest.remove_prefix(std::min<std::size_t>(3, rest.size()))) {
            std::uint32_t bits = 0;
            for (std::size_t index = 0; index < 3; ++index) {
                bits = bits << 8U |
                       (index < rest.size() ? static_cast<unsigned char>(rest[index]) : 0U);
            }
            for (std::size_t index = 0; index < 4; ++index) {
                value += index <= rest.size() ? letters[bits >> (18 - 6 * index) & 0x3FU] : '=';
            }
        }
    }
    std::string made;
    for (const char letter : text.substr(0, end)) {
        made += letter == '$' ? value : std::string{letter};
    }
    return made;
}

}  // namespace

// The first byte says what was asked for, and its highest bit whether the status is 200.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::choices input{data, size};
    const std::uint8_t first = input.next();
    const std::string text = with_values(input.rest());
    const etcd::reply from{.status = (first & 0x80U) != 0 ? 400 : etcd::status_ok, .body = text};
    const std::array<coordination::request, 7> requests{
        coordination::grant_lease{std::chrono::seconds{5}},
        coordination::keep_lease_alive{{lease}},
        coordination::revoke_lease{{lease}},
        coordination::look{},
        coordination::campaign{{lease}, {}},
        coordination::renew{{lease}, {mine}, {known}, {}, coordination::state_record{}},
        coordination::resign{{mine}, {known}, {}}};
    const std::size_t kind = (first & 0x7FU) % 11U;
    if (kind < requests.size()) {
        judge_answer(requests[kind], from);
    } else if (kind == 7) {
        judge_token(from);
    } else if (kind == 8) {
        const std::string cut = "\x05" + text;
        judge_watch({reinterpret_cast<const std::uint8_t*>(cut.data()), cut.size()});
    } else if (kind == 9) {
        judge_records(text);
    } else {
        judge_user_file(text);
    }
    require_line(etcd::read_failure(from).why);
    return 0;
}
