#include "tls/pem.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/pki.hpp"

namespace monolock::tls {
namespace {

using test::certificate_authority;
using test::credentials;
using test::key_kind;

std::string why_no_certificates(std::string_view pem) {
    const auto found = parse_certificates(pem);
    return found ? "none" : found.error().text;
}

std::string why_no_key(std::string_view pem) {
    const auto found = parse_private_key(pem);
    return found ? "none" : found.error().text;
}

class pem : public testing::Test {
protected:
    certificate_authority authority_;
    credentials leaf_ = authority_.issue({.common_names = {"leaf"}});
};

TEST_F(pem, a_chain_in_its_order) {
    const auto found = parse_certificates("said before\n" + leaf_.certificate + "said between\n" +
                                          authority_.certificate() + leaf_.key + "said after\n");
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->size(), 2U);
}

TEST_F(pem, every_kind_of_key) {
    for (const key_kind kind : {key_kind::ec_p256, key_kind::rsa_2048, key_kind::ed25519}) {
        const credentials made = authority_.issue({.common_names = {"x"}, .key = kind});
        EXPECT_TRUE(parse_certificates(made.certificate));
        EXPECT_TRUE(parse_private_key(made.certificate + made.key));
    }
}

TEST_F(pem, nothing_in_it) {
    for (const std::string& text : {std::string{}, std::string{"garbage\n"}, leaf_.key}) {
        EXPECT_EQ(why_no_certificates(text), "holds no certificate in PEM form");
    }
    EXPECT_EQ(why_no_key(""), "holds no readable private key in PEM form");
    EXPECT_NE(why_no_key(leaf_.certificate), "none");
}

// Cut anywhere, a file of two certificates is never taken for a file of one, but where the cut
// falls between the two and nothing shows it.
TEST_F(pem, cut_anywhere) {
    const std::string whole = leaf_.certificate + authority_.certificate();
    for (std::size_t size = 0; size < whole.size() - 1;
         ++size) {  // the last newline may be missing
        const bool between =
            size == leaf_.certificate.size() || size + 1 == leaf_.certificate.size();
        EXPECT_EQ(static_cast<bool>(parse_certificates(std::string_view{whole}.substr(0, size))),
                  between)
            << size;
    }
    for (std::size_t size = 0; size < leaf_.key.size() - 1; ++size) {
        EXPECT_NE(why_no_key(std::string_view{leaf_.key}.substr(0, size)), "none") << size;
    }
}

TEST_F(pem, a_block_that_is_no_certificate_within) {
    const std::string text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    EXPECT_EQ(why_no_certificates(text), "certificate 1 cannot be decoded");
    EXPECT_EQ(why_no_certificates(leaf_.certificate + text), "certificate 2 cannot be decoded");
}

TEST_F(pem, an_encrypted_key_is_refused_without_a_prompt) {
    EXPECT_EQ(why_no_key(test::encrypt_key(leaf_.key, "secret")),
              "the private key is encrypted; it must not be");
    EXPECT_EQ(why_no_key(test::encrypt_key(leaf_.key, "")),
              "the private key is encrypted; it must not be");
}

}  // namespace
}  // namespace monolock::tls
