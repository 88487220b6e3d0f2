#include "server/admin/page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "web/page_files.hpp"
#include "web/shared_files.hpp"

namespace monolock::server::admin {
namespace {

std::optional<http::response> answer_to(std::string method, std::string target) {
    return page_response(
        {.method = std::move(method), .target = std::move(target), .fields = {}, .body = {}});
}

std::string value_of(const http::response& from, std::string_view name) {
    const auto found = std::find_if(from.fields.begin(), from.fields.end(),
                                    [name](const auto& each) { return each.name == name; });
    return found != from.fields.end() ? found->value : "";
}

TEST(page, is_whole) {
    const auto page = answer_to("GET", "/");
    ASSERT_TRUE(page);
    EXPECT_EQ(page->code, http::status::ok);
    EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
    for (const auto files : {web::page_files(), web::shared_files()}) {
        for (const web::embedded_file& each : files) {
            if (each.name == "index.html") {
                continue;
            }
            const auto file = answer_to("GET", "/page/" + std::string{each.name});
            ASSERT_TRUE(file) << each.name;
            EXPECT_EQ(file->body, each.bytes);
            EXPECT_NE(file->content_type, "application/octet-stream") << each.name;
        }
    }
}

TEST(page, is_all_that_is_there) {
    for (const char* const target :
         {"/page", "/page/", "/page/../", "/page/nothing.js", "/page//main.js", "/page/%6Dain.js",
          "//", "", "/index.html", "/page/index.html", "/api/info"}) {
        EXPECT_FALSE(answer_to("GET", target)) << target;
    }
    EXPECT_TRUE(answer_to("GET", "/?anything"));
    EXPECT_TRUE(answer_to("HEAD", "/page/main.js"));
    EXPECT_EQ(answer_to("POST", "/")->code, http::status::method_not_allowed);
    EXPECT_EQ(value_of(*answer_to("POST", "/"), "Allow"), "GET, HEAD");
}

TEST(page, may_use_nothing_of_elsewhere_and_nothing_inline) {
    for (const char* const target : {"/", "/page/main.js", "/page/icon.svg"}) {
        const std::string policy = value_of(*answer_to("GET", target), "Content-Security-Policy");
        EXPECT_TRUE(policy.starts_with("default-src 'none'; "));
        EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos);
        EXPECT_EQ(policy.find("unsafe"), std::string::npos);
        EXPECT_EQ(policy.find("http"), std::string::npos);
        EXPECT_EQ(policy.find('*'), std::string::npos);
    }
    for (const web::embedded_file& each : web::page_files()) {
        for (const std::string_view word :
             {"style=", "<style", "onclick=", "innerHTML", "eval(", "https://"}) {
            EXPECT_EQ(each.bytes.find(word), std::string_view::npos) << each.name << ' ' << word;
        }
    }
}

}  // namespace
}  // namespace monolock::server::admin
