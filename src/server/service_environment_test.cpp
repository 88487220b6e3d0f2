#include "server/service_environment.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <map>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

constexpr pid_t self = 7;

class variables {
public:
    variables(std::initializer_list<std::pair<const std::string, std::string>> all) : all_{all} {}

    operator config::environment() const {  // NOLINT(google-explicit-constructor)
        return [this](const char* name) {
            const auto found = all_.find(name);
            return found == all_.end() ? nullptr : found->second.c_str();
        };
    }

private:
    std::map<std::string, std::string> all_;
};

TEST(service_environment, names_the_sockets_that_are_meant_for_this_process) {
    const variables two{{"LISTEN_PID", "7"}, {"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "a:b"}};
    const auto names = passed_names(two, self);
    ASSERT_TRUE(names);
    EXPECT_EQ(*names, (std::vector<std::string>{"a", "b"}));
    const auto of_another = passed_names(two, 8);
    ASSERT_TRUE(of_another);
    EXPECT_TRUE(of_another->empty());
    const auto none = passed_names(variables{}, self);
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
}

TEST(service_environment, each_socket_has_a_name) {
    for (const auto& [count, names] : {std::pair{"2", "a"}, {"1", "a:b"}, {"1", ""}, {"x", "a"}}) {
        const variables set{{"LISTEN_PID", "7"}, {"LISTEN_FDS", count}, {"LISTEN_FDNAMES", names}};
        EXPECT_FALSE(passed_names(set, self)) << count << ' ' << names;
    }
}

TEST(service_environment, a_watchdog_is_somebody_who_waits_for_this_process) {
    EXPECT_EQ(watchdog_patience(variables{{"WATCHDOG_USEC", "1500"}}, self), 1500us);
    EXPECT_EQ(watchdog_patience(variables{{"WATCHDOG_USEC", "1"}, {"WATCHDOG_PID", "7"}}, self),
              1us);
    EXPECT_EQ(watchdog_patience(variables{{"WATCHDOG_USEC", "1"}, {"WATCHDOG_PID", "8"}}, self),
              std::nullopt);
    for (const char* const text : {"", "0", "-1", "1s", "9223372036854775808"}) {
        EXPECT_EQ(watchdog_patience(variables{{"WATCHDOG_USEC", text}}, self), std::nullopt)
            << text;
    }
}

TEST(service_environment, no_patience_is_too_long_for_a_timer) {
    const auto patience =
        watchdog_patience(variables{{"WATCHDOG_USEC", "9223372036854775807"}}, self);
    EXPECT_EQ(patience, 8760h);
}

TEST(service_environment, an_address_is_a_path_or_an_abstract_name) {
    const auto path = notify_address("/run/notify");
    ASSERT_TRUE(path);
    EXPECT_STREQ(path->address.sun_path, "/run/notify");
    EXPECT_EQ(path->size, offsetof(sockaddr_un, sun_path) + 11);
    const auto abstract = notify_address("@notify");
    ASSERT_TRUE(abstract);
    EXPECT_EQ(std::memcmp(abstract->address.sun_path, "\0notify", 8), 0);
    EXPECT_EQ(abstract->size, offsetof(sockaddr_un, sun_path) + 7);
    EXPECT_TRUE(notify_address('/' + std::string(106, 'x')));
    EXPECT_FALSE(notify_address('/' + std::string(107, 'x')));
    EXPECT_FALSE(notify_address(""));
    EXPECT_FALSE(notify_address("run/notify"));
}

}  // namespace
}  // namespace monolock::server
