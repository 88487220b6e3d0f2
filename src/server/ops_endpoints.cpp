#include "server/ops_endpoints.hpp"

#include <string>
#include <utility>

namespace monolock::server {

namespace {

using http::response;
using http::status;

response verdict(std::optional<std::string_view> trouble) {
    return trouble ? http::plain_text(status::unavailable, *trouble)
                   : http::plain_text(status::ok, "ok");
}

class ops_endpoints {
public:
    ops_endpoints(const health& state, const metrics& numbers) noexcept
        : health_{&state}, metrics_{&numbers} {}

    [[nodiscard]] response answer(const http::request& what) const {
        const std::string_view path = what.path();
        if (path != "/healthz" && path != "/readyz" && path != "/metrics") {
            return http::plain_text(status::not_found, "there are /healthz, /readyz and /metrics");
        }
        if (what.method != "GET" && what.method != "HEAD") {
            return http::method_not_allowed(http::plain_text, "GET, HEAD");
        }
        if (path == "/healthz") {
            return verdict(health_->trouble());
        }
        if (path == "/readyz") {
            return verdict(health_->unready());
        }
        return {.code = status::ok,
                .content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = metrics_->to_text()};
    }

private:
    const health* health_;
    const metrics* metrics_;
};

http::task<response> answer(ops_endpoints by, http::request what) {
    co_return by.answer(what);
}

}  // namespace

http::service ops_service(const health& state, const metrics& numbers, logger& log) {
    return {.answer = [by = ops_endpoints{state, numbers}](
                          http::request what) { return answer(by, std::move(what)); },
            .refuse = http::plain_text,
            .bounds = {},
            .log = &log};
}

}  // namespace monolock::server
