#include "server/access_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

constexpr const char* for_a = R"({"rules":[{"identity":"a","locks":["x"]}]})";
constexpr const char* for_b = R"({"rules":[{"identity":"b","locks":["x"]}]})";

class access_file_test : public testing::Test {
protected:
    [[nodiscard]] std::string path() const { return folder_.path("acl.json"); }
    void write(const std::string& content) const { folder_.write("acl.json", content); }

    // Reads again; what was adopted goes to the list.
    [[nodiscard]] config::checked<std::string> read_again(access_file& file) {
        return file.read_again(
            [this](const access_policy& newer) { adopted_.push_back(newer.generation); });
    }

    test::scratch_folder folder_;
    std::vector<std::uint64_t> adopted_;
};

TEST_F(access_file_test, what_it_said_last_is_in_force) {
    write(for_a);
    access_file file{path()};
    EXPECT_TRUE(file.policy().permits("a", "x"));
    EXPECT_FALSE(file.policy().permits("b", "x"));
    EXPECT_EQ(file.policy().generation, 1U);

    write(for_b);
    EXPECT_EQ(*read_again(file), "1 rule");
    EXPECT_FALSE(file.policy().permits("a", "x"));
    EXPECT_TRUE(file.policy().permits("b", "x"));
    write(R"({"rules":[]})");
    EXPECT_EQ(*read_again(file), "no rules, all claims are denied");
    EXPECT_FALSE(file.policy().permits("b", "x"));
    EXPECT_THAT(adopted_, testing::ElementsAre(2, 3));
}

TEST_F(access_file_test, the_same_rules_again_are_not_adopted) {
    write(for_a);
    access_file file{path()};
    write(std::string{"\n"} + for_a);
    EXPECT_EQ(*read_again(file), "1 rule, as before");
    EXPECT_TRUE(adopted_.empty());
    EXPECT_EQ(file.policy().generation, 1U);
}

TEST_F(access_file_test, a_link_that_leads_elsewhere_is_followed) {
    write(for_a);
    fs::rename(path(), folder_.path("first"));
    fs::create_symlink("first", path());
    access_file file{path()};
    folder_.write("second", for_b);
    fs::create_symlink("second", folder_.path("next"));
    fs::rename(folder_.path("next"), path());
    ASSERT_TRUE(read_again(file));
    EXPECT_TRUE(file.policy().permits("b", "x"));
}

// What does not load keeps what was in force, and would keep a server from starting.
class bad_access_file_test : public access_file_test,
                             public testing::WithParamInterface<const char*> {};

TEST_P(bad_access_file_test, changes_nothing_and_starts_nothing) {
    write(for_a);
    access_file file{path()};
    write(GetParam());
    const auto outcome = read_again(file);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().front().text, StartsWith(path() + ":"));
    EXPECT_TRUE(adopted_.empty());
    EXPECT_TRUE(file.policy().permits("a", "x"));
    EXPECT_EQ(file.policy().generation, 1U);
    EXPECT_THAT([&] { access_file{path()}; },
                testing::ThrowsMessage<std::runtime_error>(config::joined(outcome.error())));

    write(for_b);
    EXPECT_TRUE(read_again(file));
    EXPECT_TRUE(file.policy().permits("b", "x"));
}

INSTANTIATE_TEST_SUITE_P(
    each, bad_access_file_test,
    testing::Values("", R"({"rules":[{"identity":"b","locks":["x"]})", "{}", "[]",
                    R"({"rules":{}})", R"({"rules":[{"identity":"b","locks":"x"}]})",
                    R"({"rules":[{"identity":"b","lock":["x"]}]})",
                    R"({"rules":[{"identity":"b","identity":"*","locks":["x"]}]})"));

TEST_F(access_file_test, a_file_that_is_missing_or_cannot_be_read) {
    EXPECT_THAT([&] { access_file{path()}; },
                testing::ThrowsMessage<std::runtime_error>(path() + ": No such file or directory"));
    write(for_a);
    access_file file{path()};
    fs::remove(path());
    EXPECT_EQ(config::joined(read_again(file).error()), path() + ": No such file or directory");
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    EXPECT_EQ(config::joined(read_again(file).error()), path() + ": not a regular file");
    fs::remove(path());
    fs::create_directory(path());
    EXPECT_FALSE(read_again(file));
    fs::remove(path());
    write(std::string((std::size_t{8} << 20U) + 1, ' '));
    EXPECT_EQ(config::joined(read_again(file).error()), path() + ": longer than 8388608 bytes");
    EXPECT_TRUE(file.policy().permits("a", "x"));
    EXPECT_TRUE(adopted_.empty());
}

}  // namespace
}  // namespace monolock::server
