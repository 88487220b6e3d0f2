#include "etcd/messages/answers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "etcd/messages/fields.hpp"
#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/record_text.hpp"

namespace monolock::etcd {

namespace {

using coordination::active_entry;
using coordination::answer;
using coordination::revision;
using coordination::term;
using std::chrono::seconds;

constexpr std::size_t token_bytes_max = 8192;

// What a lease of etcd may last; a reading of the clock and one of these fit into 64 bits.
constexpr seconds ttl_max{std::chrono::hours{24 * 365}};

seconds ttl_at(const json& message) {
    const seconds ttl{int64_at(message, "TTL")};
    if (ttl > ttl_max) {
        throw odd_message{"\"TTL\" is out of range"};
    }
    return std::max(ttl, seconds{0});
}

// The one key-value of a range that asked for one key.
const json* single_in(const json& range, const std::string& key) {
    const json& found = list_at(range, "kvs");
    if (found.size() > 1 || int64_at(range, "count") != static_cast<std::int64_t>(found.size())) {
        throw odd_message{"a range whose count is not what is in it"};
    }
    return found.empty() ? nullptr : &key_value_in(found[0], key);
}

// Who asks. The one that has the key, or had it, need not understand what others write there.
enum class reader_is : std::uint8_t { standby, holder };

std::optional<active_entry> active_in(const json& range, const key_names& keys, revision as_of,
                                      reader_is whose) {
    const json* const found = single_in(range, keys.active);
    if (found == nullptr) {
        return std::nullopt;
    }
    active_entry entry =
        whose == reader_is::standby ? active_entry_in(*found, keys) : own_or_other_entry_in(*found);
    if (entry.modified > as_of) {
        throw odd_message{"a key that is newer than the store"};
    }
    return entry;
}

std::optional<coordination::state_record> state_in(const json& range, const key_names& keys) {
    const json* const found = single_in(range, keys.state);
    if (found == nullptr) {
        return std::nullopt;
    }
    auto record = read_state_record(bytes_at(*found, "value"));
    if (!record) {
        throw no_record(keys, "state", record.error().text);
    }
    return *std::move(record);
}

// The answer to one of our transactions.
class transaction {
public:
    explicit transaction(const json& message)
        : succeeded_{bool_at(message, "succeeded")},
          as_of_{revision_of_store(message)},
          responses_{&list_at(message, "responses")} {}

    [[nodiscard]] bool succeeded() const noexcept { return succeeded_; }
    // Of what it did, or else of what it read.
    [[nodiscard]] revision as_of() const noexcept { return as_of_; }

    // Each response is of the kind that was asked for, and of the same revision.
    void expect(std::initializer_list<const char*> kinds) const {
        if (responses_->size() != kinds.size()) {
            throw odd_message{"a transaction with another number of responses than of requests"};
        }
        std::size_t index = 0;
        for (const char* const kind : kinds) {
            const json& each = (*responses_)[index++];
            if (!each.is_object() || each.size() != 1 || find(each, kind) == nullptr) {
                throw odd_message{std::string{"a transaction with no "} + kind};
            }
            const json& header = object_at(object_at(each, kind), "header");
            if (const auto at = int64_at(header, "revision"); at != 0 && at != as_of_.value) {
                throw odd_message{"a transaction with two revisions"};
            }
        }
    }
    [[nodiscard]] const json& range(std::size_t index) const {
        return object_at((*responses_)[index], "response_range");
    }

    // What `active` is, if the condition did not hold.
    [[nodiscard]] std::optional<active_entry> active_instead(const key_names& keys,
                                                             reader_is whose) const {
        expect({"response_range"});
        return active_in(range(0), keys, as_of_, whose);
    }

private:
    bool succeeded_;
    revision as_of_;
    const json* responses_;
};

// A condition that does not hold, and what is there says that it does.
void refuse_unchanged(const std::optional<active_entry>& active, term mine, revision known) {
    if (active && active->created == mine && active->modified == known) {
        throw odd_message{"a transaction that failed although its condition holds"};
    }
}

struct reader {
    const key_names& keys;
    const json& document;

    answer operator()(const coordination::grant_lease&) const {
        const coordination::lease_granted made{{int64_at(document, "ID")}, ttl_at(document)};
        if (made.lease.value <= 0 || made.ttl == seconds{0}) {
            throw odd_message{"a lease without an id or a TTL"};
        }
        return made;
    }
    answer operator()(const coordination::keep_lease_alive& asked) const {
        const json& message = object_at(document, "result");  // of a stream that has one
        if (int64_at(message, "ID") != asked.lease.value) {
            throw odd_message{"it is about another lease"};
        }
        return coordination::lease_kept{ttl_at(message)};
    }
    answer operator()(const coordination::revoke_lease&) const {
        static_cast<void>(revision_of_store(document));
        return coordination::lease_revoked{};
    }
    answer operator()(const coordination::look&) const {
        const revision as_of = revision_of_store(document);
        return coordination::seen{active_in(document, keys, as_of, reader_is::standby), as_of};
    }
    answer operator()(const coordination::campaign&) const {
        const transaction done{document};
        if (done.succeeded()) {
            done.expect({"response_put", "response_range"});
            return coordination::campaigned{true, done.as_of(), state_in(done.range(1), keys), {}};
        }
        const auto active = done.active_instead(keys, reader_is::standby);
        if (!active) {
            throw odd_message{"a transaction that failed although its condition holds"};
        }
        return coordination::campaigned{false, {}, {}, active};
    }
    answer operator()(const coordination::renew& asked) const {
        const transaction done{document};
        if (done.succeeded()) {
            if (asked.state) {
                done.expect({"response_put", "response_put"});
            } else {
                done.expect({"response_put"});
            }
            if (done.as_of() <= asked.known) {
                throw odd_message{"a store that went back"};
            }
            return coordination::renewed{true, done.as_of(), {}};
        }
        const auto active = done.active_instead(keys, reader_is::holder);
        refuse_unchanged(active, asked.mine, asked.known);
        return coordination::renewed{false, {}, active};
    }
    answer operator()(const coordination::resign& asked) const {
        const transaction done{document};
        if (!done.succeeded()) {
            const auto active = done.active_instead(keys, reader_is::holder);
            refuse_unchanged(active, asked.mine, asked.known);
            return coordination::resigned{false, active};
        }
        done.expect({"response_put", "response_delete_range"});
        return coordination::resigned{true, {}};
    }
};

reading failed_with(failure why) {
    return {coordination::failed{std::move(why.why)}, why.of_endpoint};
}

failure odd(const odd_message& what) {
    return {"an odd answer: " + what.why, verdict::move_on};
}

bool is_printable(std::string_view token) {
    return std::ranges::all_of(token, [](char letter) { return letter > ' ' && letter <= '~'; });
}

}  // namespace

reading read_answer(const coordination::request& asked, const key_names& keys, const reply& from) {
    try {
        if (from.status != status_ok) {
            const store_error error = error_in(from);
            if (error.code == grpc_not_found &&
                std::holds_alternative<coordination::revoke_lease>(asked)) {
                return {coordination::lease_revoked{}, verdict::keep};
            }
            return failed_with(failure_of(error));
        }
        const json document = parse_object(from.body);
        if (find(document, "error") != nullptr) {
            return failed_with(failure_of(error_in(document)));
        }
        return {std::visit(reader{keys, document}, asked), verdict::keep};
    } catch (const odd_message& what) {
        return failed_with(odd(what));
    }
}

failure read_failure(const reply& from) {
    return failure_of(error_in(from));
}

token_reading read_token(const reply& from) {
    try {
        if (from.status != status_ok) {
            const store_error error = error_in(from);
            if (error.is_about_authentication_off()) {
                return {.token = "", .why = {}};
            }
            return {.token = std::nullopt, .why = failure_of(error)};
        }
        std::string token = text_at(parse_object(from.body), "token");
        if (token.empty() || token.size() > token_bytes_max || !is_printable(token)) {
            throw odd_message{"\"token\" is missing, or nothing that can be sent back"};
        }
        return {.token = std::move(token), .why = {}};
    } catch (const odd_message& what) {
        return {.token = std::nullopt, .why = odd(what)};
    }
}

}  // namespace monolock::etcd
