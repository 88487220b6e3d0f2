// Case T6, and the files of a client: a server played over a pair of sockets shows a certificate,
// and the client says what it makes of it.

#include "tls/client_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <string>

#include "posix/descriptor.hpp"
#include "support/scratch_folder.hpp"
#include "support/tls_server_side.hpp"

namespace monolock::tls {
namespace {

using test::certificate_authority;
using test::certificate_wishes;
using test::credentials;
using test::demand_certificate_of;
using test::show;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool waits(status s) {
    return s == status::wants_read || s == status::wants_write;
}

class client_context_test : public testing::Test {
protected:
    // One handshake, and what it came to for the client: "ok", or the explanation.
    std::string connect(const client_files& files, const server_name& expected) {
        const auto loaded = client_context_source{files}.current();
        if (!loaded) {
            return loaded.error().front().text;
        }
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        const posix::descriptor server_end{ends[0]};
        const posix::descriptor client_end{ends[1]};
        channel server{server_, role::server, server_end.get()};
        channel client{*loaded, role::client, client_end.get()};
        expect_server(client, expected);
        status client_did = status::wants_read;
        status server_did = status::wants_read;
        for (int turn = 0; turn < 10 && (waits(client_did) || waits(server_did)); ++turn) {
            client_did = waits(client_did) ? client.handshake() : client_did;
            server_did = waits(server_did) ? server.handshake() : server_did;
        }
        const char* const asked_for =
            SSL_get_servername(server.native(), TLSEXT_NAMETYPE_host_name);
        sni_ = asked_for == nullptr ? "" : asked_for;
        if (client_did == status::ok) {  // with TLS 1.3 the server's word on it comes now
            std::array<std::byte, 1> nothing{};
            client_did = client.receive(nothing).outcome;
        }
        if (client_did == status::wants_read && server_did == status::ok) {
            return "ok";
        }
        end_ = client_end_of(client, !files.certificate.empty());
        return explain_client_end(client, expected, files.certificate);
    }

    std::string trusting(const certificate_wishes& shown, const server_name& expected) {
        show(server_, authority_.issue(shown));
        return connect({.ca = ca_}, expected);
    }

    certificate_authority authority_;
    test::scratch_folder folder_;
    std::string ca_ = folder_.write("ca.pem", authority_.certificate());
    context server_ = make_context(role::server);
    std::string sni_;
    client_end end_ = client_end::other;
};

const server_name db{.text = "db.example.test", .is_address = false};

TEST_F(client_context_test, a_dns_name_must_be_there_whatever_its_case) {
    EXPECT_EQ(trusting({.dns = {"other.test", "DB.example.TEST"}}, db), "ok");
    EXPECT_EQ(sni_, "db.example.test");
    EXPECT_EQ(trusting({.dns = {"example.test"}}, db),
              "hostname mismatch, its certificate is not for db.example.test");
    EXPECT_EQ(end_, client_end::server_not_trusted);
}

TEST_F(client_context_test, a_wildcard_is_one_whole_leftmost_label) {
    EXPECT_EQ(trusting({.dns = {"*.example.test"}}, db), "ok");
    for (const char* const pattern : {"*.test", "d*.example.test", "*b.example.test", "db.*.test",
                                      "*", "*.*.test", "*.db.example.test"}) {
        EXPECT_THAT(trusting({.dns = {pattern}}, db), HasSubstr("hostname mismatch")) << pattern;
    }
    const server_name below{.text = "a.db.example.test", .is_address = false};
    const server_name above{.text = "example.test", .is_address = false};
    EXPECT_THAT(trusting({.dns = {"*.example.test"}}, below), HasSubstr("hostname mismatch"));
    EXPECT_THAT(trusting({.dns = {"*.example.test"}}, above), HasSubstr("hostname mismatch"));
}

TEST_F(client_context_test, the_common_name_never_counts) {
    EXPECT_THAT(trusting({.common_names = {"db.example.test"}}, db),
                HasSubstr("hostname mismatch"));
    EXPECT_THAT(trusting({.common_names = {"db.example.test"}, .emails = {"a@b.test"}}, db),
                HasSubstr("hostname mismatch"));
    const server_name address{.text = "127.0.0.1", .is_address = true};
    EXPECT_THAT(trusting({.common_names = {"127.0.0.1"}}, address),
                HasSubstr("IP address mismatch"));
}

TEST_F(client_context_test, an_address_needs_an_address_in_the_certificate) {
    const server_name four{.text = "127.0.0.1", .is_address = true};
    const server_name six{.text = "::1", .is_address = true};
    EXPECT_EQ(trusting({.addresses = {"127.0.0.1"}}, four), "ok");
    EXPECT_EQ(sni_, "") << "an address is not sent as a name";
    EXPECT_EQ(trusting({.addresses = {"0:0:0:0:0:0:0:1"}}, six), "ok");
    EXPECT_EQ(trusting({.addresses = {"127.0.0.2"}}, four),
              "IP address mismatch, its certificate is not for 127.0.0.1");
    EXPECT_THAT(trusting({.dns = {"127.0.0.1"}}, four), HasSubstr("IP address mismatch"));
    EXPECT_THAT(trusting({.addresses = {"127.0.0.1"}}, six), HasSubstr("IP address mismatch"));
    EXPECT_THAT(trusting({.addresses = {"127.0.0.1"}}, {.text = "localhost", .is_address = false}),
                HasSubstr("hostname mismatch"));
}

TEST_F(client_context_test, the_certificate_must_be_valid_and_for_servers) {
    EXPECT_EQ(trusting({.dns = {db.text}, .valid_until = std::chrono::hours{-1}}, db),
              "certificate has expired");
    EXPECT_EQ(trusting({.dns = {db.text}, .valid_from = std::chrono::hours{1}}, db),
              "certificate is not yet valid");
    EXPECT_THAT(trusting({.dns = {db.text}, .usage = "clientAuth"}, db), HasSubstr("purpose"));
    EXPECT_EQ(trusting({.dns = {db.text}, .usage = ""}, db), "ok") << "no usage is any usage";
}

TEST_F(client_context_test, trusts_what_the_file_names_and_nothing_else) {
    certificate_authority between = authority_.issue_authority("between");
    const credentials leaf = between.issue({.dns = {db.text}});
    show(server_, leaf);
    EXPECT_EQ(connect({.ca = ca_}, db), "ok");
    const auto with_file = [&](const std::string& text) {
        return connect({.ca = folder_.write("other.pem", text)}, db);
    };
    EXPECT_EQ(with_file(between.certificate()), "ok");
    EXPECT_EQ(with_file(leaf.certificate), "ok");
    EXPECT_EQ(with_file(certificate_authority{"x"}.certificate() + authority_.certificate()), "ok");
    EXPECT_THAT(with_file(certificate_authority{"test authority"}.certificate()),
                HasSubstr("certificate"));
    EXPECT_EQ(end_, client_end::server_not_trusted);
    EXPECT_THAT(connect({}, db), HasSubstr("certificate")) << "the system's store";
    EXPECT_EQ(end_, client_end::server_not_trusted);
}

TEST_F(client_context_test, shows_its_certificate_with_its_intermediates) {
    certificate_authority between = authority_.issue_authority("between");
    const credentials own = between.issue({.dns = {"worker"}});
    show(server_, authority_.issue({.dns = {db.text}}));
    demand_certificate_of(authority_, server_);
    const client_files files{.ca = ca_,
                             .certificate = folder_.write("own.pem", own.certificate),
                             .key = folder_.write("own.key", own.key)};
    EXPECT_EQ(connect(files, db), "ok");
}

TEST_F(client_context_test, hears_that_its_certificate_is_refused) {
    show(server_, authority_.issue({.dns = {db.text}}));
    demand_certificate_of(authority_, server_);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        ASSERT_EQ(SSL_CTX_set_max_proto_version(server_.get(), version), 1);
        const auto with = [&](const credentials& own) {
            return connect({.ca = ca_,
                            .certificate = folder_.write("own.pem", own.certificate),
                            .key = folder_.write("own.key", own.key)},
                           db);
        };
        EXPECT_EQ(with(authority_.issue({.valid_until = std::chrono::hours{-1}})),
                  folder_.path("own.pem") + ": certificate expired (alert 45)");
        EXPECT_EQ(end_, client_end::certificate_refused);
        EXPECT_EQ(with(certificate_authority{"x"}.issue({.dns = {"worker"}})),
                  folder_.path("own.pem") + ": unknown ca (alert 48)");
        EXPECT_EQ(end_, client_end::certificate_refused);
        EXPECT_THAT(connect({.ca = ca_}, db),
                    version == TLS1_2_VERSION ? "none was given: handshake failure (alert 40)"
                                              : "none was given: certificate required (alert 116)");
        EXPECT_EQ(end_, client_end::certificate_refused);
    }
}

TEST_F(client_context_test, a_handshake_that_fails_otherwise_is_no_matter_of_certificates) {
    show(server_, authority_.issue({.dns = {db.text}}));
    ASSERT_EQ(SSL_CTX_set_max_proto_version(server_.get(), TLS1_2_VERSION), 1);
    ASSERT_EQ(SSL_CTX_set_cipher_list(server_.get(), "DHE+AESGCM"), 1);
    EXPECT_EQ(connect({.ca = ca_}, db), "the server says: handshake failure (alert 40)");
    EXPECT_EQ(end_, client_end::other);
}

// Of a middlebox, say; there is no certificate of the client's that could be mended.
TEST_F(client_context_test, an_alert_about_a_certificate_nobody_asked_for_is_the_servers) {
    show(server_, authority_.issue({.dns = {db.text}}));
    const auto refuse = [](SSL*, int* alert, void*) {
        *alert = SSL_AD_BAD_CERTIFICATE;
        return SSL_CLIENT_HELLO_ERROR;
    };
    SSL_CTX_set_client_hello_cb(server_.get(), refuse, nullptr);
    EXPECT_EQ(connect({.ca = ca_}, db), "the server says: bad certificate (alert 42)");
    EXPECT_EQ(end_, client_end::other);
}

TEST_F(client_context_test, everything_that_is_wrong_with_the_files_is_told_at_once) {
    const credentials own = authority_.issue({.dns = {"worker"}});
    const credentials other = authority_.issue({.dns = {"other"}});
    const std::string certificate = folder_.write("own.pem", own.certificate);
    const std::string key = folder_.write("own.key", own.key);
    const auto errors_of = [](const client_files& files) {
        const auto loaded = client_context_source{files}.current();
        std::vector<std::string> texts;
        if (!loaded) {
            for (const auto& [text] : loaded.error()) {
                texts.push_back(text);
            }
        }
        return texts;
    };
    const auto path = [this](const char* name) { return folder_.path(name); };
    EXPECT_THAT(errors_of({.ca = ca_, .certificate = certificate, .key = key}), IsEmpty());
    EXPECT_THAT(errors_of({.ca = path("a"), .certificate = path("b"), .key = path("c")}),
                ElementsAre(path("a") + ": No such file or directory",
                            path("b") + ": No such file or directory",
                            path("c") + ": No such file or directory"));
    EXPECT_THAT(errors_of({.ca = key, .certificate = key, .key = certificate}),
                ElementsAre(key + ": holds no certificate in PEM form",
                            key + ": holds no certificate in PEM form",
                            certificate + ": holds no readable private key in PEM form"));
    EXPECT_THAT(
        errors_of(
            {.ca = ca_, .certificate = certificate, .key = folder_.write("other.key", other.key)}),
        ElementsAre(path("other.key") + ": the key does not belong to the certificate in " +
                    certificate));
    const std::string locked = test::encrypt_key(own.key, "secret");
    EXPECT_THAT(
        errors_of(
            {.ca = ca_, .certificate = certificate, .key = folder_.write("locked.key", locked)}),
        ElementsAre(path("locked.key") + ": the private key is encrypted; it must not be"));
    const std::string half = own.certificate.substr(0, own.certificate.size() / 2);
    EXPECT_THAT(errors_of({.ca = ca_, .certificate = folder_.write("half.pem", half), .key = key}),
                ElementsAre(path("half.pem") + ": a PEM block is broken or does not end"));
    EXPECT_THAT(errors_of({.ca = testing::TempDir()}),
                ElementsAre(testing::TempDir() + ": not a regular file"));
}

TEST_F(client_context_test, is_made_anew_when_a_file_holds_something_else) {
    const credentials own = authority_.issue({.dns = {"worker"}});
    client_context_source source{{.ca = ca_,
                                  .certificate = folder_.write("own.pem", own.certificate),
                                  .key = folder_.write("own.key", own.key)}};
    const auto current = [&source] { return *source.current(); };
    const context first = current();
    EXPECT_EQ(current(), first);
    folder_.write("own.pem", own.certificate);
    EXPECT_EQ(current(), first) << "another file with the same in it";
    folder_.write("ca.pem", authority_.certificate() + "\n");
    const context second = current();
    EXPECT_NE(second, first);
    folder_.write("own.key", "");
    EXPECT_FALSE(source.current());
    folder_.write("own.key", own.key);
    EXPECT_EQ(current(), second) << "back again";
    std::filesystem::remove(ca_);
    EXPECT_FALSE(source.current());
}

}  // namespace
}  // namespace monolock::tls
