#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "protocol/frames.hpp"
#include "server/tls_files.hpp"
#include "support/pki.hpp"
#include "support/scratch_folder.hpp"
#include "support/shard_stage.hpp"
#include "support/tls_server_side.hpp"

namespace monolock::server {
namespace {

using test::certificate_authority;
using test::credentials;

constexpr std::chrono::milliseconds patience{10'000};
constexpr std::string_view no_longer_trusted = "client certificate is no longer trusted";

// What a server of the test goes by: clients of these authorities.
tls_setting setting(std::uint64_t generation, certificate_authority& own,
                    const std::string& client_authorities) {
    const test::scratch_folder folder;
    const credentials server = own.issue({.dns = {"server"}});
    auto loaded = load_tls({.certificate = folder.write("cert", server.certificate),
                            .key = folder.write("key", server.key),
                            .client_ca = folder.write("ca", client_authorities)});
    EXPECT_TRUE(loaded);
    return {.context = *std::move(loaded), .generation = generation};
}

tls::context client_context(const credentials& own) {
    const tls::context made = tls::make_context(tls::role::client);
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_NONE, nullptr);
    test::show(made, own);
    return made;
}

// A client that has shaken hands.
class client {
public:
    client(posix::descriptor connection, const credentials& own)
        : connection_{std::move(connection)},
          channel_{client_context(own), tls::role::client, connection_.get()} {
        tls::status did = channel_.handshake();
        while (did == tls::status::wants_read && await_readable()) {
            did = channel_.handshake();
        }
        EXPECT_EQ(did, tls::status::ok);
    }

    client& claim(std::string_view name) {
        const auto frame = protocol::encode_acquire(60'000, name);
        EXPECT_EQ(channel_.send(frame.bytes()).count, frame.bytes().size());
        return *this;
    }

    // "ACQUIRED", "24 client certificate is no longer trusted", "end", or another failure.
    std::string next() {
        protocol::server_frame_decoder decoder;
        for (;;) {
            std::array<std::byte, 1> byte{};
            const auto got = channel_.receive(byte);
            if (got.outcome == tls::status::wants_read) {
                if (!await_readable()) {
                    return "silence";
                }
                continue;
            }
            if (got.outcome != tls::status::ok) {
                return got.outcome == tls::status::peer_closed ? "end" : channel_.failure();
            }
            std::size_t used = 0;
            if (decoder.feed(byte, used) == protocol::server_frame_decoder::status::frame) {
                break;
            }
        }
        const protocol::server_frame frame = decoder.take_frame();
        if (const auto* const refusal = std::get_if<protocol::error>(&frame)) {
            return std::to_string(static_cast<int>(refusal->code)) + " " + refusal->reason;
        }
        return std::holds_alternative<protocol::acquired>(frame) ? "ACQUIRED" : "WAITING";
    }

private:
    bool await_readable() {
        pollfd entry{.fd = connection_.get(), .events = POLLIN, .revents = 0};
        return ::poll(&entry, 1, static_cast<int>(patience.count())) == 1;
    }

    posix::descriptor connection_;
    tls::channel channel_;
};

class shard_tls : public testing::Test {
protected:
    [[nodiscard]] test::shard_stage::settings wishes(std::size_t shards) {
        return {.access = {}, .tls = before_, .shards = shards};
    }
    [[nodiscard]] credentials issue() { return authority_.issue({.common_names = {"me"}}); }

    certificate_authority authority_;
    certificate_authority another_{"another"};
    tls_setting before_ = setting(1, authority_, authority_.certificate());
    tls_setting without_ = setting(2, authority_, another_.certificate());
    tls_setting with_both_ =
        setting(2, authority_, another_.certificate() + authority_.certificate());
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
    tls::channel channel{client_context(own), tls::role::client, gone.get()};
    EXPECT_EQ(channel.handshake(), tls::status::wants_read);
    ASSERT_EQ(::shutdown(gone.get(), SHUT_WR), 0);
    go_on.set_value();
    std::array<std::byte, 1> answer{};
    EXPECT_EQ(::recv(gone.get(), answer.data(), answer.size(), 0), 0);
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
