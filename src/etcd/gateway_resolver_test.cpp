#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "etcd/gateway.hpp"
#include "support/etcd_driver.hpp"

// A program of its own, because it takes the place of the system's resolver: a name whose servers
// do not answer keeps that one waiting for many seconds.

namespace {

using namespace std::chrono_literals;

constexpr std::string_view slow_name = "slow.test";
std::atomic<int> resolving{0};
std::atomic<bool> may_answer{false};

}  // namespace

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
    if (node == nullptr || node != slow_name) {
        using resolver = decltype(&getaddrinfo);
        static const auto system = reinterpret_cast<resolver>(::dlsym(RTLD_NEXT, "getaddrinfo"));
        return system(node, service, hints, result);
    }
    ++resolving;
    while (!may_answer) {
        std::this_thread::sleep_for(1ms);
    }
    --resolving;
    return EAI_AGAIN;
}

namespace monolock::etcd {
namespace {

// While the resolver is still at it: whoever waited for it would wait for ever.
TEST(gateway_resolver, does_not_hold_up_a_call) {
    std::optional<test::etcd_driver> driver{
        std::in_place,
        gateway_options{
            .endpoints = {{.where = {"slow.test", 1}}}, .prefix = "/m/", .patience = 50ms}};
    driver->watch(8);
    EXPECT_THAT(driver->expect_failure(coordination::look{}),
                testing::HasSubstr("no connection within 50 ms"));
    EXPECT_THAT(driver->expect_event<coordination::watch_broken>().why,
                testing::HasSubstr("no connection within 50 ms"));
    // Nor one that is dropped.
    driver->send(coordination::look{});
    while (resolving < 3) {
        static_cast<void>(driver->gateway().poll(posix::boot_now() + 1ms));
    }
    driver.reset();
    EXPECT_EQ(resolving, 3);
    may_answer = true;
    while (resolving > 0) {
        std::this_thread::sleep_for(1ms);
    }
}

}  // namespace
}  // namespace monolock::etcd
