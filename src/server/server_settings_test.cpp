#include "server/server_settings.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

TEST(server_settings, a_short_ttl_leaves_a_resignation_time_for_all_its_calls) {
    config::server_config configuration;
    EXPECT_EQ(resigning_time_max(configuration), 0ns) << "there is nobody to tell";
    configuration.etcd_endpoints.emplace_back();
    for (const std::chrono::seconds ttl : {1s, 2s, 3s, 5s}) {
        configuration.etcd_ttl = ttl;
        const auto patience = coordination_settings(configuration).etcd.patience;
        EXPECT_GE(resigning_time_max(configuration), 1s + 4 * patience);
    }
}

// An etcd that does not answer keeps nobody for an eighth of a long TTL each time.
TEST(server_settings, a_server_that_leaves_gives_etcd_no_longer_than_the_io_timeout) {
    config::server_config configuration;
    configuration.etcd_endpoints.emplace_back();
    const auto patience = [&configuration] {
        return coordination_settings(configuration).etcd.patience;
    };
    EXPECT_EQ(patience(), 625ms) << "an eighth of the default TTL";
    configuration.etcd_ttl = config::etcd_ttl_max;
    configuration.io_timeout = 5s;
    EXPECT_EQ(patience(), 1250ms);
    EXPECT_EQ(resigning_time_max(configuration), configuration.io_timeout + 1s);
    configuration.io_timeout = 20s;
    EXPECT_EQ(patience(), 5s);
    configuration.io_timeout = 1ms;
    EXPECT_EQ(patience(), 125ms) << "or etcd could never answer";
    configuration.etcd_ttl = 1s;
    EXPECT_EQ(patience(), 125ms);
}

}  // namespace
}  // namespace monolock::server
