#include "tls/server_context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <optional>

#include "posix/descriptor.hpp"
#include "support/pki.hpp"
#include "support/scratch_folder.hpp"
#include "tls/identity.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {
namespace {

using namespace std::chrono_literals;
using std::chrono::system_clock;
using test::certificate_authority;
using test::credentials;
using testing::ElementsAre;

namespace fs = std::filesystem;

class server_context : public testing::Test {
protected:
    server_context() {
        write("cert", own_.certificate);
        write("key", own_.key);
        write("ca", authority_.certificate());
    }

    [[nodiscard]] std::string path(const char* name) const { return folder_.path(name); }
    void write(const char* name, const std::string& content) const { folder_.write(name, content); }
    [[nodiscard]] server_files files() const {
        return {.certificate = path("cert"), .key = path("key"), .client_ca = path("ca")};
    }

    // The mistakes, without the folder's name.
    [[nodiscard]] std::vector<std::string> mistakes() const {
        const auto loaded = load_server_context(files(), system_clock::now());
        std::vector<std::string> out;
        if (!loaded) {
            for (auto [text] : loaded.error()) {
                for (std::size_t at = 0;
                     (at = text.find(folder_.path() + "/")) != std::string::npos;) {
                    text.erase(at, folder_.path().size() + 1);
                }
                out.push_back(text);
            }
        }
        return out;
    }

    certificate_authority authority_;
    credentials own_ = authority_.issue({.dns = {"server"}});
    test::scratch_folder folder_;
};

TEST_F(server_context, of_good_files) {
    EXPECT_THAT(mistakes(), ElementsAre());
    const auto without_clients = load_server_context(
        {.certificate = path("cert"), .key = path("key"), .client_ca = ""}, system_clock::now());
    EXPECT_TRUE(without_clients);
}

TEST_F(server_context, every_mistake_at_once) {
    fs::remove(path("cert"));
    write("key", "garbage");
    write("ca", own_.certificate);
    EXPECT_THAT(mistakes(), ElementsAre("cert: No such file or directory",
                                        "key: holds no readable private key in PEM form",
                                        "ca: certificate 1 is not of a certificate authority"));
}

TEST_F(server_context, a_key_of_another_certificate) {
    write("key", authority_.issue({.dns = {"server"}}).key);
    EXPECT_THAT(mistakes(), ElementsAre("key: the key does not belong to the certificate in cert"));
    write("key", authority_.issue({.dns = {"x"}, .key = test::key_kind::rsa_2048}).key);
    EXPECT_THAT(mistakes(), ElementsAre("key: the key does not belong to the certificate in cert"));
}

TEST_F(server_context, an_encrypted_key) {
    write("key", test::encrypt_key(own_.key, "secret"));
    EXPECT_THAT(mistakes(), ElementsAre("key: the private key is encrypted; it must not be"));
}

TEST_F(server_context, outside_its_time) {
    const auto replace = [this](std::chrono::seconds from, std::chrono::seconds until) {
        const credentials made =
            authority_.issue({.dns = {"server"}, .valid_from = from, .valid_until = until});
        write("cert", made.certificate);
        write("key", made.key);
    };
    replace(-2h, -1h);
    EXPECT_THAT(mistakes(), ElementsAre("cert: the certificate has expired"));
    replace(1h, 2h);
    EXPECT_THAT(mistakes(), ElementsAre("cert: the certificate is not valid yet"));
}

// No client would take it.
TEST_F(server_context, for_other_uses_only) {
    const auto replace = [this](const std::string& usage) {
        const credentials made = authority_.issue({.dns = {"server"}, .usage = usage});
        write("cert", made.certificate);
        write("key", made.key);
    };
    replace("clientAuth");
    EXPECT_THAT(mistakes(), ElementsAre("cert: the certificate is not for TLS servers (see its key "
                                        "usages)"));
    for (const char* const good : {"serverAuth", "serverAuth,clientAuth", ""}) {
        replace(good);
        EXPECT_THAT(mistakes(), ElementsAre()) << good;
    }
}

TEST_F(server_context, authorities_that_are_none) {
    write("ca", "");
    EXPECT_THAT(mistakes(), ElementsAre("ca: holds no certificate in PEM form"));
    write("ca", authority_.certificate() + authority_.certificate().substr(0, 100));
    EXPECT_THAT(mistakes(), ElementsAre("ca: a PEM block is broken or does not end"));
}

// --- what a context accepts ---

class handshakes : public server_context {
protected:
    struct outcome {
        status server = status::wants_read;
        std::string failure;
        std::string identity;
        bool trusted_by_another = false;
    };

    // A client with that certificate comes to a server with the test's files.
    outcome come(const credentials& client, certificate_authority* newest = nullptr) {
        const auto serves = *load_server_context(files(), system_clock::now());
        const context asks = make_context(role::client);
        const auto chain = parse_certificates(client.certificate);
        const auto key = parse_private_key(client.key);
        SSL_CTX_use_certificate(asks.get(), chain->front().get());
        for (std::size_t index = 1; index < chain->size(); ++index) {
            SSL_CTX_add1_chain_cert(asks.get(), (*chain)[index].get());
        }
        SSL_CTX_use_PrivateKey(asks.get(), key->get());

        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        const posix::descriptor near{ends[0]};
        const posix::descriptor far{ends[1]};
        channel server{serves, role::server, near.get()};
        channel from{asks, role::client, far.get()};
        outcome did;
        for (int turn = 0; turn < 5 && did.server == status::wants_read; ++turn) {
            static_cast<void>(from.handshake());
            did.server = server.handshake();
        }
        if (did.server == status::ok) {
            did.identity = *identity_of(SSL_get0_peer_certificate(server.native()));
            if (newest != nullptr) {
                write("ca", newest->certificate());
                did.trusted_by_another =
                    still_trusts(*load_server_context(files(), system_clock::now()), server);
            }
        } else {
            did.failure = server.failure();
        }
        return did;
    }
};

TEST_F(handshakes, let_in_who_was_signed) {
    const outcome did = come(authority_.issue({.uris = {"spiffe://me"}, .usage = "clientAuth"}));
    EXPECT_EQ(did.server, status::ok) << did.failure;
    EXPECT_EQ(did.identity, "spiffe://me");
}

TEST_F(handshakes, refuse_another_authority) {
    const outcome did = come(certificate_authority{"another"}.issue({.common_names = {"me"}}));
    EXPECT_EQ(did.server, status::failed);
    EXPECT_THAT(did.failure, testing::StartsWith("certificate verify failed: "));
}

TEST_F(handshakes, refuse_the_expired_and_the_wrong_use) {
    EXPECT_EQ(
        come(authority_.issue({.common_names = {"me"}, .valid_from = -2h, .valid_until = -1h}))
            .failure,
        "certificate verify failed: certificate has expired");
    EXPECT_EQ(come(authority_.issue({.common_names = {"me"}, .usage = "serverAuth"})).failure,
              "certificate verify failed: unsuitable certificate purpose");
}

TEST_F(handshakes, refuse_who_has_no_identity) {
    EXPECT_EQ(
        come(authority_.issue({.common_names = {"one", "two"}})).failure,
        "certificate verify failed: certificate rejected: the certificate has two Common Names");
}

TEST_F(handshakes, take_an_intermediate_authority) {
    certificate_authority below = authority_.issue_authority("below");
    const credentials leaf = below.issue({.common_names = {"me"}});
    EXPECT_EQ(come(leaf).server, status::ok);
    // As the only one that is trusted, without the one above it.
    write("ca", below.certificate());
    EXPECT_EQ(come(leaf).server, status::ok);
    EXPECT_EQ(come(authority_.issue({.common_names = {"me"}})).server, status::failed);
}

// One replaces the other, and for a while both are trusted.
TEST_F(handshakes, take_either_of_two_authorities_of_one_name) {
    certificate_authority newer;
    const credentials of_old = authority_.issue({.common_names = {"me"}});
    const credentials of_new = newer.issue({.common_names = {"me"}});
    for (const std::string& both : {authority_.certificate() + newer.certificate(),
                                    newer.certificate() + authority_.certificate()}) {
        write("ca", both);
        EXPECT_EQ(come(of_old, &authority_).server, status::ok);
        write("ca", both);
        EXPECT_EQ(come(of_new).server, status::ok);
    }
    write("ca", authority_.certificate());
    EXPECT_TRUE(come(of_old, &authority_).trusted_by_another);
    write("ca", authority_.certificate());
    EXPECT_FALSE(come(of_old, &newer).trusted_by_another);
    write("ca", newer.certificate());
    EXPECT_EQ(come(of_old).server, status::failed);
}

TEST_F(handshakes, are_looked_at_again_when_the_authorities_change) {
    certificate_authority another{"another"};
    const credentials me = authority_.issue({.common_names = {"me"}});
    EXPECT_TRUE(come(me, &authority_).trusted_by_another);
    EXPECT_FALSE(come(me, &another).trusted_by_another);
}

}  // namespace
}  // namespace monolock::tls
