#include "tls/identity.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/pki.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {
namespace {

using namespace std::string_literals;
using test::certificate_wishes;

config::parsed<std::string> identity(const certificate_wishes& wishes) {
    static test::certificate_authority authority;
    const auto made = parse_certificates(authority.issue(wishes).certificate);
    return identity_of(made->front().get());
}

std::string who(const certificate_wishes& wishes) {
    const auto found = identity(wishes);
    EXPECT_TRUE(found) << found.error().text;
    return found ? *found : "";
}

std::string why_nobody(const certificate_wishes& wishes) {
    const auto found = identity(wishes);
    EXPECT_FALSE(found) << *found;
    return found ? "" : found.error().text;
}

TEST(identity, the_first_uri_comes_first) {
    EXPECT_EQ(who({.common_names = {"cn"}, .dns = {"dns"}, .uris = {"spiffe://a", "spiffe://b"}}),
              "spiffe://a");
}

TEST(identity, then_the_first_dns_name) {
    EXPECT_EQ(who({.common_names = {"cn"}, .dns = {"one.example", "two.example"}}), "one.example");
    EXPECT_EQ(who({.dns = {"no-cn.example"}}), "no-cn.example");
}

TEST(identity, then_the_common_name) {
    EXPECT_EQ(who({.common_names = {"worker 7"}}), "worker 7");
    EXPECT_EQ(who({.common_names = {"cn"}, .emails = {"a@b.example"}, .addresses = {"127.0.0.1"}}),
              "cn");
    EXPECT_EQ(who({.common_names = {"größer"}}), "größer");
}

TEST(identity, odd_characters_are_data) {
    EXPECT_EQ(who({.common_names = {"*"}}), "*");
    EXPECT_EQ(who({.common_names = {"a\nb\"\\"}}), "a\nb\"\\");
    EXPECT_EQ(who({.uris = {"spiffe://*\n"}}), "spiffe://*\n");
}

TEST(identity, alternative_names_settle_two_common_names) {
    EXPECT_EQ(who({.common_names = {"one", "two"}, .dns = {"dns"}}), "dns");
}

TEST(identity, the_ambiguous_is_refused) {
    EXPECT_EQ(why_nobody({.common_names = {"one", "two"}}), "the certificate has two Common Names");
    EXPECT_EQ(why_nobody({.common_names = {"one", "one"}}), "the certificate has two Common Names");
    EXPECT_EQ(why_nobody({.common_names = {"one", "two"}, .emails = {"a@b.example"}}),
              "the certificate has two Common Names");
    EXPECT_EQ(why_nobody({}), "the certificate has no name");
    EXPECT_EQ(why_nobody({.common_names = {"good\0.evil.example"s}}),
              "the certificate's name contains a NUL");
    EXPECT_EQ(why_nobody({.dns = {"good\0.evil.example"s, "second.example"}}),
              "the certificate's name contains a NUL");
    EXPECT_EQ(why_nobody({.common_names = {"cn"}, .uris = {""}}),
              "the certificate's name is empty");
    EXPECT_EQ(why_nobody({.common_names = {""}}), "the certificate's name is empty");
    EXPECT_EQ(why_nobody({.uris = {"\xff\xfe"}}), "the certificate's name is not valid UTF-8");
}

}  // namespace
}  // namespace monolock::tls
