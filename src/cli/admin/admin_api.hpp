#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cli/admin/admin_channel.hpp"
#include "cli/admin/admin_error.hpp"
#include "cli/admin/api_answers.hpp"

namespace monolock::cli {

// The server's answer to a request that it did not grant: another status than 200.
class refusal : public admin_error {
public:
    refusal(unsigned http_status, json document);

    [[nodiscard]] unsigned http_status() const noexcept { return http_status_; }
    // With its "error".
    [[nodiscard]] const json& document() const noexcept { return document_; }

private:
    unsigned http_status_;
    json document_;
};

// The admin API's calls, by name. Each returns the document of a 200, as it came and checked to be
// what it should be, or throws: refusal, else admin_error.
class admin_api {
public:
    // The channel must outlive it.
    explicit admin_api(admin_channel& through) : channel_{&through} {}

    [[nodiscard]] json info();
    // Every lock that matches, once, page by page of one listing: {"locks": […]}. Ends, whatever
    // the pages say.
    [[nodiscard]] json locks(const std::optional<std::string>& match);
    // The first so many of them.
    [[nodiscard]] json first_locks(const std::optional<std::string>& match, std::size_t count);
    [[nodiscard]] json show(std::string_view name);
    [[nodiscard]] json release(std::string_view name, std::optional<std::uint64_t> token);
    [[nodiscard]] json kick(std::string_view name, std::string_view who);

private:
    // The locks of this page and of all behind it.
    [[nodiscard]] json all_pages(json page);
    [[nodiscard]] json ask(const std::string& target);
    // Of what every server has: there 404 is the answer of something else.
    [[nodiscard]] json ask_any_server(const std::string& target);
    // Claim is what makes facts of the claim that was ended.
    template <class Claim>
    [[nodiscard]] json change(std::string_view method, const std::string& target,
                              std::string_view name, Claim claim_from);

    admin_channel* channel_;
};

}  // namespace monolock::cli
