#include "cli/admin/admin_api.hpp"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "server/http/target.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

using server::http::percent_encoded;

// Few enough that a page fits the limits of the channel with all its waiters.
constexpr std::size_t page_locks = 500;

// A listing goes after a minute, or when others come; who is that slow begins anew, but not for
// ever.
constexpr int listing_tries = 3;

exit_code status_of(unsigned http_status) noexcept {
    switch (http_status) {
        case 403:
            return exit_code::not_authorized;
        case 404:
            return exit_code::not_there;
        case 409:
            return exit_code::conflict;
        case 503:
            return exit_code::unreachable;
        default:
            return exit_code::refused;
    }
}

std::string error_of(const json& document) {
    const auto text = text_of(document, "error");
    if (!text) {
        throw bad_answer{"an error without its reason"};
    }
    const std::string escaped = telemetry::quoted(*text);
    return escaped.substr(1, escaped.size() - 2);  // one line, without quotes around it
}

json document_of(const admin_answer& answer) {
    constexpr unsigned ok = 200;
    json document = parse_object(answer.body);
    if (answer.status != ok) {
        throw refusal{answer.status, std::move(document)};
    }
    return document;
}

std::string first_page(const std::optional<std::string>& match, std::size_t limit) {
    return "/api/locks?limit=" + std::to_string(limit) +
           (match ? "&match=" + percent_encoded(*match) : "");
}

// To the query: there a name is nothing but a name, also "." and "..".
std::string about(std::string_view resource, std::string_view name) {
    return std::string{resource} + "?name=" + percent_encoded(name);
}

}  // namespace

refusal::refusal(unsigned http_status, json document)
    : admin_error{status_of(http_status), error_of(document)},
      http_status_{http_status},
      document_(std::move(document)) {}  // with braces it would become a list of one

json admin_api::ask(const std::string& target) {
    return document_of(channel_->get(target));
}

json admin_api::ask_any_server(const std::string& target) {
    try {
        return ask(target);
    } catch (const refusal& no) {
        if (no.status() == exit_code::not_there) {
            throw bad_answer{"it knows no " + target.substr(0, target.find('?'))};
        }
        throw;
    }
}

template <class Claim>
json admin_api::change(std::string_view method, const std::string& target, std::string_view name,
                       Claim claim_from) {
    const admin_answer answer = channel_->change(method, target);
    try {
        json ended = document_of(answer);
        check_name(ended, name);
        static_cast<void>(claim_from(ended));
        return ended;
    } catch (const bad_answer& failed) {
        throw bad_answer{failed.why() + change_unknown};
    }
}

json admin_api::info() {
    json info = ask_any_server("/api/info");
    check_info(info);
    return info;
}

json admin_api::first_locks(const std::optional<std::string>& match, std::size_t count) {
    json page = ask_any_server(first_page(match, count));
    static_cast<void>(locks_from(page));
    return page;
}

json admin_api::locks(const std::optional<std::string>& match) {
    for (int tries = 0; tries < listing_tries; ++tries) {
        try {
            return all_pages(first_locks(match, page_locks));
        } catch (const refusal& no) {
            if (no.status() != exit_code::not_there) {
                throw;
            }
        }
    }
    throw admin_error{exit_code::unreachable,
                      "the server lets go of the listing before all of it is read"};
}

json admin_api::all_pages(json page) {
    json all = json::array();
    std::string last;  // a name before all others
    while (true) {
        const std::vector<lock_facts> found = locks_from(page, last);
        const auto next = next_page_from(page);
        json& documents = page["locks"];
        std::move(documents.begin(), documents.end(), std::back_inserter(all));
        if (!next) {
            return json::object({{"locks", std::move(all)}});
        }
        if (found.empty()) {
            throw bad_answer{"a listing that does not go on"};
        }
        last = found.back().name;
        page = ask(*next);
    }
}

json admin_api::show(std::string_view name) {
    json lock = ask(about("/api/lock", name));
    check_name(lock, name);
    static_cast<void>(lock_from(lock));
    return lock;
}

json admin_api::release(std::string_view name, std::optional<std::uint64_t> token) {
    return change(
        "POST",
        about("/api/lock/release", name) + (token ? "&token=" + std::to_string(*token) : ""), name,
        holder_from);
}

json admin_api::kick(std::string_view name, std::string_view who) {
    return change("DELETE", about("/api/lock/waiter", name) + "&id=" + percent_encoded(who), name,
                  waiter_from);
}

}  // namespace monolock::cli
