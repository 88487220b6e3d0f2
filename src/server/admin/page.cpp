#include "server/admin/page.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server/admin/api_call.hpp"
#include "web/page_files.hpp"
#include "web/shared_files.hpp"

namespace monolock::server::admin {

namespace {

// Nothing of another origin, nothing inline, no text that becomes markup or script, no frame around
// it, and nowhere to send a form.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr std::array content_types{
    std::pair{std::string_view{".html"}, std::string_view{"text/html; charset=utf-8"}},
    std::pair{std::string_view{".css"}, std::string_view{"text/css; charset=utf-8"}},
    std::pair{std::string_view{".js"}, std::string_view{"text/javascript; charset=utf-8"}},
    std::pair{std::string_view{".svg"}, std::string_view{"image/svg+xml"}}};

std::string_view content_type_of(std::string_view name) {
    const auto* const found =
        std::find_if(content_types.begin(), content_types.end(),
                     [name](const auto& each) { return name.ends_with(each.first); });
    return found != content_types.end() ? found->second : "application/octet-stream";
}

const web::embedded_file* find(std::string_view name) {
    for (const auto files : {web::page_files(), web::shared_files()}) {
        const auto found = std::find_if(files.begin(), files.end(),
                                        [name](const auto& each) { return each.name == name; });
        if (found != files.end()) {
            return &*found;
        }
    }
    return nullptr;
}

const web::embedded_file* file_at(std::string_view path) {
    constexpr std::string_view folder = "/page/";
    if (path == "/") {
        return find("index.html");
    }
    if (!path.starts_with(folder) || path.ends_with(".html")) {
        return nullptr;  // what the page asks for is told from the page's own place
    }
    return find(path.substr(folder.size()));
}

}  // namespace

std::optional<http::response> page_response(const http::request& to) {
    const web::embedded_file* const file = file_at(to.path());
    if (file == nullptr) {
        return std::nullopt;
    }
    if (to.method != "GET" && to.method != "HEAD") {
        return http::method_not_allowed(refuse, "GET, HEAD");
    }
    return http::response{
        .code = http::status::ok,
        .content_type = std::string{content_type_of(file->name)},
        .body = std::string{file->bytes},
        .fields = {{.name = "Content-Security-Policy", .value = std::string{policy}},
                   {.name = "Referrer-Policy", .value = "no-referrer"},
                   {.name = "X-Frame-Options", .value = "DENY"}}};
}

}  // namespace monolock::server::admin
