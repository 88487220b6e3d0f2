#include "cli/job.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "cli/command.hpp"
#include "posix/descriptor.hpp"

namespace monolock::cli {
namespace {

// A job under a shell. All of its processes hold the write end of a pipe, so that the pipe's end is
// the death of the last of them, wherever it went.
class running_job : public testing::Test {
protected:
    void SetUp() override {
        become_subreaper();
        sigset_t deaths;
        sigemptyset(&deaths);
        sigaddset(&deaths, SIGCHLD);
        pthread_sigmask(SIG_BLOCK, &deaths, nullptr);
    }

    // Returns once the script has written a byte to descriptor 9.
    job start(const char* script) {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe(ends.data()), 0);
        alive_ = posix::descriptor{ends[0]};
        posix::descriptor writer{ends[1]};
        EXPECT_EQ(dup2(writer.get(), 9), 9);
        command shell{{"sh", "-c", script}, environ, {}};
        const auto result = shell.start(signal_state::capture(), terminal{}, false);
        EXPECT_EQ(result.error_number, 0);
        close(9);
        writer.reset();
        char byte = 0;
        EXPECT_EQ(read(alive_.get(), &byte, 1), 1);
        return job{result.process};
    }

    // Whether the last process is gone within the time.
    bool all_gone(int milliseconds) const {
        pollfd end{.fd = alive_.get(), .events = POLLIN, .revents = 0};
        return poll(&end, 1, milliseconds) == 1 && (end.revents & POLLHUP) != 0;
    }

private:
    posix::descriptor alive_;
};

void reap_until_ended(job& what) {
    for (int round = 0; round < 1000 && !what.status(); ++round) {
        const timespec moment{.tv_sec = 0, .tv_nsec = 10'000'000};
        nanosleep(&moment, nullptr);
        (void)what.reap();
    }
}

TEST_F(running_job, kill_all_spares_no_grandchild_and_no_new_session) {
    job what = start(
        "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 60; :' & "
        "sleep 60 & wait) & printf x >&9; sleep 60; :");
    EXPECT_FALSE(all_gone(0));
    what.kill_all();
    EXPECT_TRUE(all_gone(0));
    EXPECT_TRUE(what.empty());
    ASSERT_TRUE(what.status());
    EXPECT_TRUE(WIFSIGNALED(*what.status()));
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
}

TEST_F(running_job, kill_all_outruns_a_job_that_keeps_forking) {
    job what = start("printf x >&9; while :; do (sleep 60 &) ; done");
    what.kill_all();
    EXPECT_TRUE(all_gone(0));
}

TEST_F(running_job, a_signal_to_the_command_is_not_for_its_children) {
    job what = start(
        "trap 'exit 4' USR1; "
        "(trap 'exit 3' USR1; printf x >&9; sleep 60 & wait) & wait");
    what.signal_command(SIGUSR1);
    reap_until_ended(what);
    ASSERT_TRUE(what.status());
    EXPECT_EQ(WEXITSTATUS(*what.status()), 4);
    EXPECT_FALSE(what.empty());
    EXPECT_FALSE(all_gone(0));
    what.kill_all();
    EXPECT_TRUE(all_gone(0));
}

TEST_F(running_job, stops_and_continuations_are_news) {
    job what = start("printf x >&9; exec sleep 60");
    what.signal_group(SIGSTOP);
    std::optional<int> stopped;
    for (int round = 0; round < 500 && !stopped; ++round) {
        poll(nullptr, 0, 10);
        stopped = what.reap().stopped_by;
    }
    EXPECT_EQ(stopped, SIGSTOP);
    what.signal_group(SIGCONT);
    bool continued = false;
    for (int round = 0; round < 500 && !continued; ++round) {
        poll(nullptr, 0, 10);
        continued = what.reap().continued;
    }
    EXPECT_TRUE(continued);
    what.kill_all();
}

TEST(command, failures_are_told_apart) {
    const auto failure_of = [](const char* program) {
        command what{{program}, environ, {}};
        const auto result = what.start(signal_state::capture(), terminal{}, false);
        EXPECT_EQ(result.error_number, 0);
        pollfd report{.fd = result.report.get(), .events = POLLIN, .revents = 0};
        EXPECT_EQ(poll(&report, 1, -1), 1);
        waitpid(result.process, nullptr, 0);
        return command::failure_in(result.report);
    };
    EXPECT_EQ(failure_of("no-such-program-anywhere"), ENOENT);
    EXPECT_EQ(failure_of(""), ENOENT);
    EXPECT_EQ(failure_of("/etc/passwd"), EACCES);
    EXPECT_EQ(failure_of("/"), EACCES);
    EXPECT_EQ(failure_of("true"), 0);
}

}  // namespace
}  // namespace monolock::cli
