#include "server/audit_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

namespace fs = std::filesystem;

class audit_file_test : public testing::Test {
protected:
    [[nodiscard]] std::string path(const char* name) const { return folder_.path(name); }
    [[nodiscard]] std::string content() const {
        std::ifstream in{path("log"), std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    void write(const std::string& text) const { folder_.write("log", text); }
    [[nodiscard]] std::unique_ptr<audit_file> open(const char* name = "log") const {
        auto file = audit_file::open(path(name));
        EXPECT_TRUE(file) << file.error().text;
        return *std::move(file);
    }
    [[nodiscard]] std::string why_not(const std::string& path) const {
        const auto file = audit_file::open(path);
        return file ? "it opens" : file.error().text;
    }

    test::scratch_folder folder_;
};

TEST_F(audit_file_test, is_created_for_owner_and_group) {
    const mode_t before = ::umask(022);
    const auto file = open();
    ::umask(before);
    struct stat about {};
    ASSERT_EQ(::stat(path("log").c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777U, 0640U);
    EXPECT_FALSE(file->ends_within_line());
}

TEST_F(audit_file_test, appends) {
    write("before\n");
    const auto file = open();
    EXPECT_FALSE(file->ends_within_line());
    EXPECT_EQ(file->write("one\n").written, 4U);
    EXPECT_EQ(file->write("two\n").error, 0);
    EXPECT_EQ(content(), "before\none\ntwo\n");
}

TEST_F(audit_file_test, sees_that_it_ends_within_a_line) {
    write("before\n{\"ti");
    EXPECT_TRUE(open()->ends_within_line());
    write("");
    EXPECT_FALSE(open()->ends_within_line());
}

TEST_F(audit_file_test, takes_back_what_it_wrote_last) {
    write("before\n");
    const auto file = open();
    EXPECT_EQ(file->write("one\nhal").written, 7U);
    EXPECT_TRUE(file->take_back(3));
    EXPECT_EQ(content(), "before\none\n");
    EXPECT_EQ(file->write("half\n").written, 5U);
    EXPECT_EQ(content(), "before\none\nhalf\n");
}

TEST_F(audit_file_test, takes_nothing_back_that_another_wrote) {
    const auto file = open();
    EXPECT_EQ(file->write("one").written, 3U);
    std::ofstream{path("log"), std::ios::app} << "another\n";
    EXPECT_FALSE(file->take_back(3));
    EXPECT_EQ(content(), "oneanother\n");
}

TEST_F(audit_file_test, says_why_it_cannot_be_opened) {
    EXPECT_EQ(why_not(path("no/such/folder")), "No such file or directory");
    EXPECT_EQ(why_not(folder_.path()), "Is a directory");
}

TEST_F(audit_file_test, a_check_says_the_same_and_makes_nothing) {
    EXPECT_FALSE(audit_file::check(path("log")));
    EXPECT_FALSE(fs::exists(path("log")));
    write("there\n");
    EXPECT_FALSE(audit_file::check(path("log")));
    EXPECT_FALSE(audit_file::check("-"));
    EXPECT_EQ(audit_file::check(path("no/such/folder"))->text, "No such file or directory");
    EXPECT_EQ(audit_file::check(folder_.path())->text, "Is a directory");
}

TEST_F(audit_file_test, a_full_disk_is_an_errno) {
    auto full = audit_file::open("/dev/full");
    ASSERT_TRUE(full) << full.error().text;
    const auto did = (*full)->write("x\n");
    EXPECT_EQ(did.written, 0U);
    EXPECT_EQ(did.error, ENOSPC);
    EXPECT_FALSE((*full)->take_back(1));
}

TEST_F(audit_file_test, a_pipe_needs_no_reader_and_never_waits_for_one) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    const auto pipe = open("pipe");
    EXPECT_EQ(pipe->write_bytes_max(), static_cast<std::size_t>(PIPE_BUF));
    const std::string piece(PIPE_BUF, 'x');
    audit_sink::outcome did{};
    std::size_t written = 0;
    while ((did = pipe->write(piece)).error == 0) {
        EXPECT_EQ(did.written, piece.size()) << "whole or not at all";
        written += did.written;
    }
    EXPECT_EQ(did.error, EAGAIN);
    pipe->wait(std::chrono::milliseconds{1});

    const posix::descriptor reader{::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK)};
    ASSERT_TRUE(reader);
    std::string read(written, '\0');
    EXPECT_EQ(::read(reader.get(), read.data(), read.size()), static_cast<ssize_t>(written));
    EXPECT_EQ(pipe->write(piece).written, piece.size());
}

}  // namespace
}  // namespace monolock::server
