#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <string_view>

#include "support/pki.hpp"
#include "support/shard_stage.hpp"
#include "support/shard_tls.hpp"

namespace monolock::server {
namespace {

using test::certificate_authority;
using test::credentials;
using client = test::secured_client;

constexpr std::string_view no_longer_trusted = "client certificate is no longer trusted";

class shard_tls : public testing::Test {
protected:
    [[nodiscard]] test::shard_stage::settings wishes(std::size_t shards) {
        return {.access = {}, .tls = before_, .shards = shards};
    }
    [[nodiscard]] credentials issue() { return authority_.issue({.common_names = {"me"}}); }

    certificate_authority authority_;
    certificate_authority another_{"another"};
    tls_setting before_ = test::tls_setting_of(1, authority_, authority_.certificate());
    tls_setting without_ = test::tls_setting_of(2, authority_, another_.certificate());
    tls_setting with_both_ =
        test::tls_setting_of(2, authority_, another_.certificate() + authority_.certificate());
};

TEST_F(shard_tls, a_handshake_before_the_authority_was_taken_out_and_a_claim_after) {
    test::shard_stage running{wishes(1)};
    client refused{running.connect(), issue()};
    // The server is done with it too: it has answered another claim that came later.
    EXPECT_EQ((client{running.connect(), issue()}.claim("other").next()), "ACQUIRED");
    running.at(0).adopt_tls(without_);
    EXPECT_EQ(refused.claim("n").next(), "24 " + std::string{no_longer_trusted});
    EXPECT_EQ(refused.next(), "end");
    EXPECT_EQ(running.denials(), 0U) << "no rule was asked";
}

TEST_F(shard_tls, a_handshake_before_and_a_claim_after_other_changes) {
    test::shard_stage running{wishes(1)};
    client trusted{running.connect(), issue()};
    EXPECT_EQ((client{running.connect(), issue()}.claim("other").next()), "ACQUIRED");
    running.at(0).adopt_tls(with_both_);
    EXPECT_EQ(trusted.claim("n").next(), "ACQUIRED");
}

TEST_F(shard_tls, who_comes_after_the_authority_was_taken_out_hears_an_alert) {
    test::shard_stage running{wishes(1)};
    running.at(0).adopt_tls(without_);
    client refused{running.connect(), issue()};  // with TLS 1.3 the client's side is done
    EXPECT_EQ(refused.claim("n").next(), "unknown ca");
    client taken{running.connect(), another_.issue({.common_names = {"me"}})};
    EXPECT_EQ(taken.claim("n").next(), "ACQUIRED");
    // Asked after an answer that the shard gave later: the alert goes out before it is counted.
    EXPECT_EQ(running.handshake_errors(), 1U);
}

// Who goes away while it stands in line costs no key exchange.
TEST_F(shard_tls, a_peer_that_ended_before_its_handshake_began_is_not_answered) {
    test::shard_stage running{wishes(1)};
    std::promise<void> go_on;
    running.at(0).ask([wait = go_on.get_future().share()] { wait.wait(); });
    const posix::descriptor gone = running.connect();
    const credentials own = issue();
    tls::channel channel{test::client_context(own), tls::role::client, gone.get()};
    EXPECT_EQ(channel.handshake(), tls::status::wants_read);
    ASSERT_EQ(::shutdown(gone.get(), SHUT_WR), 0);
    go_on.set_value();
    std::array<std::byte, 1> answer{};
    // Its end or a reset, since nobody has read what it said.
    EXPECT_LE(::recv(gone.get(), answer.data(), answer.size(), 0), 0);
}

// The first shard has heard of nothing, and hands the claim over; its home has the new files before
// it looks at any claim.
TEST_F(shard_tls, a_claim_between_two_shards_meets_newer_files_at_its_home) {
    test::shard_stage running{wishes(2)};
    running.at(1).adopt_tls(without_);
    EXPECT_EQ((client{running.connect(), issue()}.claim(running.name_at(0)).next()), "ACQUIRED");
    client there{running.connect(), issue()};
    there.claim(running.name_at(1));
    running.at(1).start();
    EXPECT_EQ(there.next(), "24 " + std::string{no_longer_trusted});
}

TEST_F(shard_tls, a_claim_that_newer_files_let_in_is_not_judged_by_older_ones) {
    test::shard_stage running{wishes(2)};
    running.at(0).adopt_tls(without_);
    client there{running.connect(), another_.issue({.common_names = {"me"}})};
    there.claim(running.name_at(1));
    running.at(1).start();
    EXPECT_EQ(there.next(), "ACQUIRED");
}

}  // namespace
}  // namespace monolock::server
