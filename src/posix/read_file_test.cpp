#include "posix/read_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/scratch_folder.hpp"

namespace monolock::posix {
namespace {

namespace fs = std::filesystem;

class read_file_test : public testing::Test {
protected:
    [[nodiscard]] std::string path(const char* name) const { return folder_.path(name); }
    [[nodiscard]] std::string write(const std::string& content) const {
        return folder_.write("file", content);
    }

    test::scratch_folder folder_;
};

TEST_F(read_file_test, the_whole_file) {
    const std::string content{"a\0b\r\n\xff", 6};
    const auto read = read_file(write(content), 100);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_EQ(*read, content);
}

TEST_F(read_file_test, an_empty_file) {
    const auto read = read_file(write(""), 100);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, "");
}

TEST_F(read_file_test, as_long_as_allowed_and_no_longer) {
    EXPECT_TRUE(read_file(write(std::string(100, 'x')), 100));
    const auto read = read_file(write(std::string(101, 'x')), 100);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text, "longer than 100 bytes");
}

// Files of /proc say that they are empty.
TEST_F(read_file_test, a_file_that_is_longer_than_it_says) {
    const auto read = read_file("/proc/self/maps", 1U << 20U);
    ASSERT_TRUE(read) << read.error().text;
    EXPECT_NE(read->find("posix_test"), std::string::npos) << "this program is in it";
    EXPECT_FALSE(read_file("/proc/self/maps", 20));
}

TEST_F(read_file_test, what_is_not_there) {
    const auto read = read_file(path("nothing"), 100);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().text, "No such file or directory");
}

TEST_F(read_file_test, what_is_no_regular_file) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    for (const std::string& each : {path("pipe"), folder_.path(), std::string{"/dev/zero"}}) {
        const auto read = read_file(each, 100);  // returns at all
        ASSERT_FALSE(read) << each;
        EXPECT_EQ(read.error().text, "not a regular file") << each;
    }
}

TEST_F(read_file_test, follows_a_symbolic_link) {
    fs::create_symlink(write("content"), path("link"));
    const auto read = read_file(path("link"), 100);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, "content");
}

}  // namespace
}  // namespace monolock::posix
