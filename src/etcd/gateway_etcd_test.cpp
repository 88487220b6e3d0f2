#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "etcd/gateway.hpp"
#include "etcd/messages/json_reader.hpp"
#include "support/etcd_driver.hpp"
#include "support/etcd_process.hpp"
#include "support/pki.hpp"
#include "support/scratch_folder.hpp"

// The gateway against a true etcd, the one that is installed.
namespace monolock::etcd {
namespace {

using namespace std::chrono_literals;
using coordination::active_deleted;
using coordination::active_put;
using coordination::active_record;
using coordination::campaigned;
using coordination::lease_granted;
using coordination::lease_id;
using coordination::lease_kept;
using coordination::lease_revoked;
using coordination::look;
using coordination::renewed;
using coordination::resigned;
using coordination::revision;
using coordination::seen;
using coordination::state_record;
using coordination::watch_broken;
using test::etcd_driver;
using test::etcd_process;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto ample = 10s;

class gateway_etcd : public testing::Test {
protected:
    void SetUp() override {
        if (!etcd_process::is_installed()) {
            GTEST_SKIP() << "there is no etcd on the PATH (Debian: etcd-server)";
        }
    }

    static gateway_options options_for(const etcd_process& etcd) {
        return {
            .endpoints = {test::loopback(etcd.port())}, .prefix = "/monolock/", .patience = ample};
    }

    static lease_id grant(etcd_driver& driver) {
        return driver.expect<lease_granted>(coordination::grant_lease{60s}).lease;
    }
};

active_record active(const std::string& name, std::uint64_t sequence) {
    return {.name = name, .ttl = 5s, .sequence = sequence};
}
state_record state(const std::string& name, revision term, std::uint64_t sequence,
                   bool done = false) {
    return {.ceiling = 9007199254740993 + sequence,
            .longest_lease = 30s,
            .name = name,
            .ttl = 5s,
            .written_in = term,
            .sequence = sequence,
            .resigned = done};
}

TEST_F(gateway_etcd, leases) {
    const etcd_process etcd;
    etcd_driver driver{options_for(etcd)};
    const auto made = driver.expect<lease_granted>(coordination::grant_lease{5s});
    EXPECT_EQ(made.ttl, 5s);
    EXPECT_GT(made.lease.value, 0);
    EXPECT_EQ(driver.expect<lease_kept>(coordination::keep_lease_alive{made.lease}).ttl, 5s);
    driver.expect<lease_revoked>(coordination::revoke_lease{made.lease});
    EXPECT_EQ(driver.expect<lease_kept>(coordination::keep_lease_alive{made.lease}).ttl, 0s);
    // What is gone is revoked.
    driver.expect<lease_revoked>(coordination::revoke_lease{made.lease});
    // More than etcd has.
    EXPECT_THAT(
        driver.expect_failure(coordination::grant_lease{std::chrono::hours{24 * 365 * 300}}),
        HasSubstr("too large lease TTL"));
}

TEST_F(gateway_etcd, two_servers_and_the_chain_of_transactions) {
    const etcd_process etcd;
    etcd_driver a{options_for(etcd)};
    etcd_driver b{options_for(etcd)};
    const auto nobody = a.expect<seen>(look{});
    EXPECT_FALSE(nobody.active);

    const lease_id lease = grant(a);
    const auto won = a.expect<campaigned>(coordination::campaign{lease, active("a", 0)});
    ASSERT_TRUE(won.won);
    EXPECT_GT(won.at, nobody.as_of);
    EXPECT_FALSE(won.state);

    const auto lost = b.expect<campaigned>(coordination::campaign{grant(b), active("b", 0)});
    EXPECT_FALSE(lost.won);
    ASSERT_TRUE(lost.active);
    EXPECT_EQ(lost.active->value, active("a", 0));
    EXPECT_EQ(lost.active->created, won.at);
    EXPECT_EQ(lost.active->modified, won.at);
    EXPECT_EQ(b.expect<seen>(look{}).active, lost.active);

    const coordination::renew first{lease, won.at, won.at, active("a", 1), state("a", won.at, 1)};
    const auto good = a.expect<renewed>(first);
    ASSERT_TRUE(good.done);
    EXPECT_GT(good.at, won.at);
    // The same once more, as if it had been under way for long.
    const auto late = a.expect<renewed>(first);
    EXPECT_FALSE(late.done);
    ASSERT_TRUE(late.active);
    EXPECT_EQ(late.active->value, active("a", 1));
    EXPECT_EQ(late.active->created, won.at);
    EXPECT_EQ(late.active->modified, good.at);

    const coordination::resign last{won.at, good.at, state("a", won.at, 2, true)};
    EXPECT_TRUE(a.expect<resigned>(last).done);
    EXPECT_FALSE(a.expect<resigned>(last).done);
    EXPECT_FALSE(a.expect<renewed>(first).active);

    const auto next = b.expect<campaigned>(coordination::campaign{grant(b), active("b", 0)});
    ASSERT_TRUE(next.won);
    EXPECT_GT(next.at, good.at);
    EXPECT_EQ(next.state, state("a", won.at, 2, true));
}

TEST_F(gateway_etcd, a_lease_that_is_revoked_by_hand_takes_active_with_it) {
    const etcd_process etcd;
    etcd_driver driver{options_for(etcd)};
    const lease_id lease = grant(driver);
    const auto won = driver.expect<campaigned>(coordination::campaign{lease, active("a", 0)});
    static_cast<void>(
        etcd.post("/v3/lease/revoke", R"({"ID":")" + std::to_string(lease.value) + R"("})"));
    const auto lost = driver.expect<renewed>(
        coordination::renew{lease, won.at, won.at, active("a", 1), state("a", won.at, 1)});
    EXPECT_FALSE(lost.done);
    EXPECT_FALSE(lost.active);
    EXPECT_THAT(driver.expect_failure(coordination::campaign{lease, active("a", 0)}),
                HasSubstr("requested lease not found"));
}

TEST_F(gateway_etcd, what_somebody_else_wrote_is_not_taken_for_a_record) {
    const etcd_process etcd;
    etcd_driver driver{options_for(etcd)};
    static_cast<void>(etcd.post("/v3/kv/put", R"({"key":")" + to_base64("/monolock/active") +
                                                  R"(","value":")" + to_base64("by hand") +
                                                  R"("})"));
    EXPECT_THAT(driver.expect_failure(look{}), HasSubstr("no record of ours"));
    EXPECT_THAT(driver.expect_failure(coordination::campaign{grant(driver), active("a", 0)}),
                HasSubstr("no record of ours"));
    // Another prefix is another world.
    auto elsewhere = options_for(etcd);
    elsewhere.prefix = "/other/";
    EXPECT_FALSE(etcd_driver{elsewhere}.expect<seen>(look{}).active);
}

TEST_F(gateway_etcd, a_watch_tells_of_a_reign) {
    const etcd_process etcd;
    etcd_driver a{options_for(etcd)};
    etcd_driver b{options_for(etcd)};
    const revision begin{a.expect<seen>(look{}).as_of.value + 1};
    b.watch(begin.value);

    const lease_id lease = grant(a);
    const auto won = a.expect<campaigned>(coordination::campaign{lease, active("a", 0)});
    const auto first = b.expect_event<active_put>();
    EXPECT_EQ(first.entry.value, active("a", 0));
    EXPECT_EQ(first.entry.created, won.at);
    EXPECT_EQ(first.entry.modified, won.at);

    const auto good = a.expect<renewed>(
        coordination::renew{lease, won.at, won.at, active("a", 1), state("a", won.at, 1)});
    EXPECT_EQ(b.expect_event<active_put>().entry.modified, good.at);
    a.expect<lease_revoked>(coordination::revoke_lease{lease});
    const auto gone = b.expect_event<active_deleted>();
    EXPECT_GT(gone.at, good.at);

    // From a revision on: the same once more, and no older one.
    b.watch(begin.value);
    EXPECT_EQ(b.expect_event<active_put>().entry.value, active("a", 0));
    EXPECT_EQ(b.expect_event<active_put>().entry.value, active("a", 1));
    EXPECT_EQ(b.expect_event<active_deleted>().at, gone.at);
    b.watch(good.at.value);
    EXPECT_EQ(b.expect_event<active_put>().entry.value, active("a", 1));

    // A history that is not there any more.
    static_cast<void>(etcd.post("/v3/kv/compaction",
                                R"({"revision":")" + std::to_string(gone.at.value) + R"("})"));
    b.watch(begin.value);
    EXPECT_THAT(b.expect_event<watch_broken>().why, HasSubstr("compacted"));
    // The deletion at that revision is gone too, which must not pass in silence.
    b.watch(gone.at.value);
    EXPECT_THAT(b.expect_event<watch_broken>().why, HasSubstr("compacted"));
    const auto after = b.expect<seen>(look{});
    EXPECT_FALSE(after.active);
    b.watch(after.as_of.value + 1);
    b.expect<campaigned>(coordination::campaign{grant(b), active("b", 0)});
    EXPECT_EQ(b.expect_event<active_put>().entry.value, active("b", 0));
}

TEST_F(gateway_etcd, a_member_that_dies_and_one_that_is_left_alone) {
    etcd_process etcd{{.members = 2}};
    auto options = options_for(etcd);
    options.endpoints = {test::loopback(etcd.port(0)), test::loopback(etcd.port(1))};
    options.patience = 1s;
    etcd_driver driver{options};
    const revision now = driver.expect<seen>(look{}).as_of;
    driver.watch(now.value + 1);
    driver.expect<campaigned>(coordination::campaign{grant(driver), active("a", 0)});
    driver.expect_event<active_put>();

    auto alone = options;
    alone.endpoints = {test::loopback(etcd.port(1))};
    etcd_driver left{alone};
    left.watch(now.value + 1);
    left.expect_event<active_put>();

    etcd.kill(0);
    EXPECT_THAT(driver.expect_event<watch_broken>().why,
                StartsWith(config::to_string(options.endpoints[0])));
    // One of two has no majority, and so no leader. It answers nothing that is true as of now, and
    // ends its watches.
    EXPECT_THAT(driver.expect_failure(look{}), StartsWith(config::to_string(options.endpoints[1])));
    EXPECT_THAT(left.expect_event<watch_broken>().why, HasSubstr("no leader"));
}

// --- users

class gateway_etcd_users : public gateway_etcd {
protected:
    // Users are root and monolock, with the passwords "r" and "p:w".
    static void enable(etcd_process& etcd) {
        const std::string begin = to_base64("/monolock/");
        const std::string end = to_base64("/monolock0");
        const std::vector<std::pair<std::string, std::string>> calls = {
            {"user/add", R"({"name":"root","password":"r"})"},
            {"role/add", R"({"name":"root"})"},
            {"user/grant", R"({"user":"root","role":"root"})"},
            {"user/add", R"({"name":"monolock","password":"p:w"})"},
            {"role/add", R"({"name":"locks"})"},
            {"role/grant", R"({"name":"locks","perm":{"permType":"READWRITE","key":")" + begin +
                               R"(","range_end":")" + end + R"("}})"},
            {"user/grant", R"({"user":"monolock","role":"locks"})"},
            {"enable", "{}"}};
        for (const auto& [path, body] : calls) {
            static_cast<void>(etcd.post("/v3/auth/" + path, body));
        }
        become_root(etcd);
    }
    static void become_root(etcd_process& etcd) {
        etcd.use_token("");
        const std::string got =
            etcd.post("/v3/auth/authenticate", R"({"name":"root","password":"r"})");
        const std::size_t begin = got.find(R"("token":")") + 9;
        etcd.use_token(got.substr(begin, got.find('"', begin) - begin));
    }
    gateway_options with_user(const etcd_process& etcd, const std::string& line) {
        auto options = options_for(etcd);
        options.user_file = folder_.write("user", line + "\n");
        return options;
    }

    test::scratch_folder folder_;
};

TEST_F(gateway_etcd_users, only_a_user_with_its_password_may) {
    etcd_process etcd{{.flags = {"--bcrypt-cost=4"}}};
    enable(etcd);
    EXPECT_THAT(etcd_driver{options_for(etcd)}.expect_failure(look{}),
                HasSubstr("user name is empty, and no user file is given"));

    etcd_driver driver{with_user(etcd, "monolock:wrong")};
    EXPECT_THAT(driver.expect_failure(look{}),
                AllOf(HasSubstr("no token: "), HasSubstr("invalid user ID or password")));
    folder_.write("user", "monolock:p:w");
    const revision now = driver.expect<seen>(look{}).as_of;
    EXPECT_TRUE(
        driver.expect<campaigned>(coordination::campaign{grant(driver), active("a", 0)}).won);
    driver.watch(now.value + 1);
    driver.expect_event<active_put>();

    auto elsewhere = with_user(etcd, "monolock:p:w");
    elsewhere.prefix = "/other/";
    etcd_driver outside{elsewhere};
    EXPECT_THAT(outside.expect_failure(look{}), HasSubstr("permission denied"));
    outside.watch(1);
    EXPECT_THAT(outside.expect_event<watch_broken>().why, HasSubstr("permission denied"));

    // Rights change: tokens from before are not good for every request any more.
    static_cast<void>(etcd.post("/v3/auth/role/add", R"({"name":"more"})"));
    driver.expect<seen>(look{});
    // And without users nobody asks for a token, nor gives one.
    become_root(etcd);
    static_cast<void>(etcd.post("/v3/auth/disable", "{}"));
    driver.expect<seen>(look{});
    etcd_driver fresh{with_user(etcd, "monolock:p:w")};
    fresh.expect<seen>(look{});
}

TEST_F(gateway_etcd_users, a_token_that_expired_is_renewed) {
    etcd_process etcd{{.flags = {"--bcrypt-cost=4", "--auth-token-ttl=1"}}};
    enable(etcd);
    etcd_driver watching{with_user(etcd, "monolock:p:w")};
    etcd_driver asking{with_user(etcd, "monolock:p:w")};
    const revision now = watching.expect<seen>(look{}).as_of;
    asking.expect<campaigned>(coordination::campaign{grant(asking), active("a", 0)});
    // Nothing tells that a token expired but that it is refused, and to ask prolongs it. etcd looks
    // for expired ones each second.
    std::string refused;
    for (int tries = 0; refused.empty() && tries < 5; ++tries) {
        std::this_thread::sleep_for(2100ms);
        watching.watch(now.value + 1);
        const auto news = watching.next();
        ASSERT_TRUE(news);
        const auto& event = std::get<coordination::watch_event>(*news);
        if (const auto* const broken = std::get_if<watch_broken>(&event)) {
            refused = broken->why;
        }
    }
    EXPECT_THAT(refused, HasSubstr("invalid auth token"));
    watching.watch(now.value + 1);
    watching.expect_event<active_put>();
    EXPECT_TRUE(asking.expect<seen>(look{}).active);
}

TEST_F(gateway_etcd_users, a_token_is_forgotten_by_a_member_that_starts_anew) {
    etcd_process etcd{{.flags = {"--bcrypt-cost=4"}}};
    enable(etcd);
    etcd_driver driver{with_user(etcd, "monolock:p:w")};
    driver.expect<seen>(look{});
    etcd.kill(0);
    etcd.start_again(0);
    driver.expect<seen>(look{});
}

// --- TLS

class gateway_etcd_tls : public gateway_etcd {
protected:
    // A member that shows a certificate for 127.0.0.1 and wants one of a client.
    [[nodiscard]] test::etcd_wishes wishes() {
        const auto server = authority_.issue({.addresses = {"127.0.0.1"}});
        return {.flags = {"--cert-file=" + folder_.write("server.pem", server.certificate),
                          "--key-file=" + folder_.write("server.key", server.key),
                          "--trusted-ca-file=" + folder_.write("ca.pem", authority_.certificate()),
                          "--client-cert-auth"},
                .scheme = "https"};
    }
    gateway_options secure(const etcd_process& etcd) {
        auto options = options_for(etcd);
        options.endpoints = {test::loopback(etcd.port(), config::endpoint_scheme::https)};
        options.ca_file = folder_.path("ca.pem");
        show(authority_);
        options.certificate_file = folder_.path("client.pem");
        options.key_file = folder_.path("client.key");
        return options;
    }
    void show(test::certificate_authority& from) {
        const auto client = from.issue({.common_names = {"monolock"}, .usage = "clientAuth"});
        folder_.write("client.pem", client.certificate);
        folder_.write("client.key", client.key);
    }

    test::scratch_folder folder_;
    test::certificate_authority authority_;
    test::certificate_authority stranger_{"another authority"};
};

// A key under a pass phrase.
constexpr const char* encrypted_key =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjYxzO4WI8YoAICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEELjUsiveD2Vxx6en4Tm/M/4EgZD4\n"
    "PqhYIr//rRg5Jx75kM/XSxr9ZyKPuNNElp1sdoU+K3uk5iLCsaolUN1Xb+JHLrs2\n"
    "GdYOC4Wiae81hkb+Z2ghkYWfMrysF4uzxzng+VV6LWOD2pX2FS53Sa1/CzV49BQ3\n"
    "pG0jEHUEEcLyJ0e2VRkyLMGiJDcxLw8DN9C/RkoFY7AD2TzSasd1oAGftckHU78=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";

TEST_F(gateway_etcd_tls, certificates_of_both_sides) {
    const etcd_process etcd{wishes()};
    const auto good = secure(etcd);
    {
        etcd_driver driver{good};
        const revision now = driver.expect<seen>(look{}).as_of;
        driver.watch(now.value + 1);
        driver.expect<campaigned>(coordination::campaign{grant(driver), active("a", 0)});
        driver.expect_event<active_put>();

        // What it shows is read anew for a new connection, and the one that is kept stays.
        show(stranger_);
        driver.expect<seen>(look{});
        driver.watch(now.value + 1);
        EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("certificate"));
        show(authority_);
        driver.watch(now.value + 1);
        driver.expect_event<active_put>();
        // So is whom it trusts.
        folder_.write("ca.pem", stranger_.certificate());
        driver.watch(now.value + 1);
        EXPECT_THAT(driver.expect_event<watch_broken>().why, HasSubstr("certificate"));
        folder_.write("ca.pem", authority_.certificate());
    }
    auto without = good;
    without.certificate_file = without.key_file = "";
    EXPECT_THAT(etcd_driver{without}.expect_failure(look{}), HasSubstr("certificate"));

    auto missing = good;
    missing.key_file = folder_.path("none.key");
    EXPECT_THAT(etcd_driver{missing}.expect_failure(look{}), HasSubstr("none.key"));

    // Whoever sits at the terminal is not asked.
    auto encrypted = good;
    encrypted.key_file = folder_.write("encrypted.key", encrypted_key);
    EXPECT_THAT(etcd_driver{encrypted}.expect_failure(look{}), HasSubstr("encrypted.key"));
}

TEST_F(gateway_etcd_tls, the_server_is_always_verified) {
    const etcd_process etcd{wishes()};
    const auto good = secure(etcd);
    auto other_authority = good;
    other_authority.ca_file = folder_.write("other.pem", stranger_.certificate());
    EXPECT_THAT(etcd_driver{other_authority}.expect_failure(look{}), HasSubstr("certificate"));

    // Without a CA of our own those of the system count, and this is none of them.
    auto system = good;
    system.ca_file = "";
    EXPECT_THAT(etcd_driver{system}.expect_failure(look{}), HasSubstr("certificate"));

    // It is for 127.0.0.1 and for no other name.
    auto other_name = good;
    other_name.endpoints[0].where.host = "localhost";
    EXPECT_THAT(etcd_driver{other_name}.expect_failure(look{}), HasSubstr("localhost"));

    auto no_file = good;
    no_file.ca_file = folder_.path("none.pem");
    EXPECT_THAT(etcd_driver{no_file}.expect_failure(look{}), HasSubstr("none.pem"));

    etcd_driver{good}.expect<seen>(look{});
}

}  // namespace
}  // namespace monolock::etcd
