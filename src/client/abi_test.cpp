// The part of the ABI that symbols do not show: sizes and layout of the public types. A program
// compiled against the headers has them built in, so a change here means a new soname
// (monolock_abi_version in packaging.cmake). libmonolock.symbols guards the rest.

#include <gtest/gtest.h>

#include <cstddef>

#include "monolock/monolock.hpp"

namespace monolock {
namespace {

#if defined(__x86_64__) && defined(__GLIBCXX__)

static_assert(sizeof(lock) == 16 && sizeof(client) == 16);
static_assert(sizeof(error) == 56 && sizeof(server_error) == 56);
static_assert(sizeof(boot_clock::time_point) == 8);

static_assert(sizeof(client_options) == 272 && sizeof(tls_options) == 128);

#endif

// Where the members lie, measured on an object: client_options has no standard layout.
template <class Member>
std::ptrdiff_t offset(const client_options& whole, const Member& part) {
    return reinterpret_cast<const char*>(&part) - reinterpret_cast<const char*>(&whole);
}

TEST(abi, options_keep_their_order) {
    const client_options it;
    EXPECT_EQ(offset(it, it.address), 0);
    EXPECT_LT(offset(it, it.address), offset(it, it.connect_timeout));
    EXPECT_LT(offset(it, it.connect_timeout), offset(it, it.local_address));
    EXPECT_LT(offset(it, it.local_address), offset(it, it.tls));
    EXPECT_LT(offset(it, it.tls), offset(it, it.dialer));
    EXPECT_LT(offset(it, it.dialer), offset(it, it.on_stage));
}

TEST(abi, tls_options_keep_their_order) {
    const tls_options it;
    const auto at = [&it](const std::string& part) {
        return reinterpret_cast<const char*>(&part) - reinterpret_cast<const char*>(&it);
    };
    EXPECT_EQ(at(it.ca_file), 0);
    EXPECT_LT(at(it.ca_file), at(it.certificate_file));
    EXPECT_LT(at(it.certificate_file), at(it.key_file));
    EXPECT_LT(at(it.key_file), at(it.server_name));
}

TEST(abi, stages_keep_their_numbers) {
    EXPECT_EQ(static_cast<int>(stage::preparing), 0);
    EXPECT_EQ(static_cast<int>(stage::connecting), 1);
    EXPECT_EQ(static_cast<int>(stage::requesting), 2);
    EXPECT_EQ(static_cast<int>(stage::queued), 3);
    EXPECT_EQ(static_cast<int>(stage::held), 4);
}

TEST(abi, conditions_keep_their_numbers) {
    EXPECT_EQ(static_cast<int>(condition::retryable), 1);
    EXPECT_EQ(static_cast<int>(condition::claim_lost), 2);
    EXPECT_EQ(static_cast<int>(condition::denied), 3);
    EXPECT_EQ(static_cast<int>(condition::misuse), 4);
    EXPECT_EQ(static_cast<int>(condition::in_doubt), 5);
}

}  // namespace
}  // namespace monolock
