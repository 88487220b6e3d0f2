#include "server/tls_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "support/pki.hpp"
#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

using namespace std::chrono_literals;
using test::credentials;
using testing::HasSubstr;

class tls_files_test : public testing::Test {
protected:
    tls_files_test() { write(authority_.issue({.dns = {"server"}})); }

    void write(const credentials& own) const {
        folder_.write("cert", own.certificate);
        folder_.write("key", own.key);
        folder_.write("ca", authority_.certificate());
    }
    [[nodiscard]] tls::server_files paths() const {
        return {.certificate = folder_.path("cert"),
                .key = folder_.path("key"),
                .client_ca = folder_.path("ca")};
    }

    // Reads again; what was adopted goes to the list.
    [[nodiscard]] config::checked<std::string> read_again(tls_files& files) {
        return files.read_again([this](const tls_setting& newest) { adopted_.push_back(newest); });
    }

    test::scratch_folder folder_;
    test::certificate_authority authority_;
    std::vector<tls_setting> adopted_;
};

TEST_F(tls_files_test, good_files_are_adopted_as_the_next_generation) {
    tls_files files{paths()};
    EXPECT_EQ(files.setting().generation, 1U);
    const tls::context first = files.setting().context;
    write(authority_.issue({.dns = {"server"}}));
    const auto outcome = read_again(files);
    ASSERT_TRUE(outcome);
    EXPECT_THAT(*outcome, testing::MatchesRegex("certificate valid until 20.*Z, "
                                                "clients must show one of 1 authority"));
    ASSERT_EQ(adopted_.size(), 1U);
    EXPECT_EQ(adopted_[0].generation, 2U);
    EXPECT_EQ(adopted_[0].context, files.setting().context);
    EXPECT_NE(adopted_[0].context, first);
}

TEST_F(tls_files_test, what_does_not_load_changes_nothing_and_would_start_nothing) {
    tls_files files{paths()};
    const tls::context first = files.setting().context;
    folder_.write("cert", "garbage");
    folder_.write("ca", "garbage");
    const auto outcome = read_again(files);
    ASSERT_FALSE(outcome);
    const std::string why = config::joined(outcome.error());
    EXPECT_THAT(why, HasSubstr(folder_.path("cert") + ": "));
    EXPECT_THAT(why, HasSubstr("; " + folder_.path("ca") + ": "));
    EXPECT_EQ(why.find('\n'), std::string::npos);
    EXPECT_TRUE(adopted_.empty());
    EXPECT_EQ(files.setting().context, first);
    EXPECT_EQ(files.setting().generation, 1U);
    EXPECT_THAT([&] { tls_files{paths()}; }, testing::ThrowsMessage<std::runtime_error>(why));

    write(authority_.issue({.dns = {"server"}}));
    EXPECT_TRUE(read_again(files));
    EXPECT_EQ(files.setting().generation, 2U);
}

// Each of them good by itself.
TEST_F(tls_files_test, the_files_of_two_pairs_are_not_mixed) {
    tls_files files{paths()};
    folder_.write("cert", authority_.issue({.dns = {"server"}}).certificate);
    ASSERT_FALSE(read_again(files));
    EXPECT_TRUE(adopted_.empty());
}

}  // namespace
}  // namespace monolock::server
