#include "server/audit_log.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;

// A disk that tests fill, empty and freeze. Outlives the log's thread.
struct disk {
    std::mutex guard;
    std::string text;                  // guarded
    std::atomic<int> refuses_with{0};  // errno
    std::atomic<bool> frozen{false};   // a write does not return
    std::atomic<int> opened{0};
    std::atomic<int> open_sinks{0};
    std::atomic<bool> opens{true};

    std::string read() {
        const std::lock_guard held{guard};
        return text;
    }
    std::vector<std::string> lines() {
        std::vector<std::string> out;
        std::istringstream in{read()};
        for (std::string line; std::getline(in, line);) {
            out.push_back(line);
        }
        return out;
    }
};

class disk_sink final : public audit_sink {
public:
    explicit disk_sink(disk& on) : on_{&on} { ++on_->open_sinks; }
    disk_sink(const disk_sink&) = delete;
    disk_sink& operator=(const disk_sink&) = delete;
    ~disk_sink() override { --on_->open_sinks; }

    outcome write(std::string_view text) noexcept override {
        while (on_->frozen) {
            std::this_thread::sleep_for(1ms);
        }
        if (const int error = on_->refuses_with) {
            return {.written = 0, .error = error};
        }
        const std::lock_guard held{on_->guard};
        on_->text += text;
        return {.written = text.size(), .error = 0};
    }
    [[nodiscard]] std::size_t write_bytes_max() const noexcept override { return 4096; }
    bool take_back(std::size_t /*count*/) noexcept override { return false; }
    [[nodiscard]] bool ends_within_line() const noexcept override { return false; }
    void wait(std::chrono::milliseconds /*time_max*/) noexcept override {
        std::this_thread::sleep_for(1ms);
    }

private:
    disk* on_;
};

audit_log::opener opener_on(disk& on) {
    return [&on](const std::string& /*path*/) -> config::parsed<std::unique_ptr<audit_sink>> {
        if (!on.opens) {
            return config::diagnostic{"not now"};
        }
        ++on.opened;
        return std::unique_ptr<audit_sink>{std::make_unique<disk_sink>(on)};
    };
}

template <class Condition>
[[nodiscard]] bool comes_true(Condition condition) {
    for (const auto end = std::chrono::steady_clock::now() + 10s; !condition();) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

class audit_log_test : public testing::Test {
protected:
    audit_log make(audit_queue::limits bounds = {}) {
        return audit_log{"path", log_, opener_on(disk_), bounds};
    }
    [[nodiscard]] audit_subject about(std::string_view lock) const {
        return {.lock = lock, .identity = {}, .peer = peer_};
    }

    disk disk_;
    logger log_{telemetry::log_level::error, telemetry::log_format::text};
    peer_address peer_;
};

TEST_F(audit_log_test, writes_soon_and_without_being_asked) {
    audit_log log = make();
    log.granted(about("a"), {7}, 1'999'999ns);
    EXPECT_TRUE(comes_true([&] { return disk_.lines().size() == 1; }));
    EXPECT_NE(disk_.read().find(
                  R"("lock":"a","identity":"","remote_addr":"unknown","token":7,"wait_ms":1})"),
              std::string::npos)
        << disk_.read();
    log.released(about("a"), {7}, 2ms, core::end_reason::expired);
    EXPECT_TRUE(comes_true([&] { return disk_.lines().size() == 2; }));
    EXPECT_NE(disk_.read().find(R"("token":7,"held_ms":2,"reason":"expired"})"), std::string::npos);
}

TEST_F(audit_log_test, finish_writes_all_that_waits) {
    audit_log log = make();
    for (int number = 0; number < 5000; ++number) {
        log.denied(about(std::to_string(number)));
    }
    log.finish(10s);
    const auto lines = disk_.lines();
    ASSERT_EQ(lines.size(), 5000U);
    for (std::size_t number = 0; number < lines.size(); ++number) {
        ASSERT_NE(lines[number].find("\"lock\":\"" + std::to_string(number) + "\""),
                  std::string::npos);
    }
}

TEST_F(audit_log_test, what_one_thread_records_stays_in_its_order) {
    audit_log log = make();
    constexpr int each = 2000;
    std::vector<std::thread> shards;
    for (const char* const name : {"a", "b", "c"}) {
        shards.emplace_back([&log, name, this] {
            for (std::uint64_t token = 1; token <= each; ++token) {
                log.granted(about(name), {token}, 0ns);
            }
        });
    }
    for (std::thread& shard : shards) {
        shard.join();
    }
    log.finish(10s);
    std::array<std::uint64_t, 3> last{};
    for (const std::string& line : disk_.lines()) {
        const char lock = line.at(line.find("\"lock\":\"") + 8);
        const std::uint64_t token = std::stoull(line.substr(line.find("\"token\":") + 8));
        ASSERT_EQ(token, last.at(static_cast<std::size_t>(lock - 'a')) + 1);
        last.at(static_cast<std::size_t>(lock - 'a')) = token;
    }
    EXPECT_EQ(last, (std::array<std::uint64_t, 3>{each, each, each}));
}

TEST_F(audit_log_test, while_the_disk_refuses_events_wait) {
    disk_.refuses_with = ENOSPC;
    audit_log log = make();
    for (int number = 0; number < 100; ++number) {
        log.denied(about("a"));
    }
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(disk_.read(), "");
    disk_.refuses_with = 0;
    EXPECT_TRUE(comes_true([&] { return disk_.lines().size() == 100; }));
    EXPECT_EQ(log.lost_events(), 0U);
}

// However soon after the one before, of which the diagnostic log had its line for this minute.
TEST_F(audit_log_test, each_refusal_is_known_until_all_is_written) {
    audit_log log = make();
    for (int outage = 0; outage < 3; ++outage) {
        disk_.refuses_with = ENOSPC;
        EXPECT_FALSE(log.is_refused());
        log.denied(about("a"));
        EXPECT_TRUE(comes_true([&] { return log.is_refused(); })) << outage;
        disk_.refuses_with = 0;
        EXPECT_TRUE(comes_true([&] { return !log.is_refused(); })) << outage;
    }
    EXPECT_EQ(disk_.lines().size(), 3U);
}

TEST_F(audit_log_test, past_the_bound_the_loss_is_counted_and_stands_in_the_stream) {
    disk_.frozen = true;
    audit_log log = make({.bytes_max = 4096, .batch_bytes = 512});
    for (int number = 0; number < 200; ++number) {
        log.denied(about("a"));
    }
    const std::uint64_t lost = log.lost_events();
    EXPECT_GT(lost, 100U);
    disk_.frozen = false;
    log.finish(10s);
    std::uint64_t kept = 0;
    std::uint64_t told = 0;
    for (const std::string& line : disk_.lines()) {
        if (const auto at = line.find("\"event\":\"audit_gap\",\"lost\":");
            at != std::string::npos) {
            told += std::stoull(line.substr(at + 27));
        } else {
            ++kept;
        }
    }
    EXPECT_EQ(told, lost);
    EXPECT_EQ(kept + lost, 200U);
}

TEST_F(audit_log_test, goes_on_in_what_is_opened_anew) {
    audit_log log = make();
    EXPECT_EQ(disk_.opened, 1);
    log.denied(about("a"));
    const auto reopened = log.reopen();
    ASSERT_TRUE(reopened);
    EXPECT_EQ(*reopened, "path");
    EXPECT_EQ(disk_.opened, 2);
    EXPECT_TRUE(comes_true([&] { return disk_.open_sinks == 1; })) << "the old one is closed";
    log.denied(about("b"));
    ASSERT_TRUE(log.reopen());
    ASSERT_TRUE(log.reopen());
    log.finish(10s);
    EXPECT_EQ(disk_.lines().size(), 2U);
    EXPECT_EQ(disk_.open_sinks, 1);
}

TEST_F(audit_log_test, a_reopen_that_fails_keeps_the_old_file) {
    audit_log log = make();
    disk_.opens = false;
    const auto reopened = log.reopen();
    ASSERT_FALSE(reopened);
    EXPECT_EQ(config::joined(reopened.error()), "audit log path: not now");
    log.denied(about("a"));
    log.finish(10s);
    EXPECT_EQ(disk_.lines().size(), 1U);
}

TEST_F(audit_log_test, a_start_that_cannot_open_it_fails) {
    disk_.opens = false;
    EXPECT_THROW(make(), std::runtime_error);
    EXPECT_THROW((audit_log{"/no/such/folder/audit.log", log_}), std::runtime_error);
}

TEST_F(audit_log_test, finish_waits_no_longer_than_it_may_for_a_disk_that_refuses) {
    disk_.refuses_with = EIO;
    audit_log log = make();
    log.denied(about("a"));
    const auto begin = std::chrono::steady_clock::now();
    log.finish(50ms);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_EQ(disk_.read(), "");
}

TEST_F(audit_log_test, finish_leaves_a_thread_behind_that_is_stuck_in_a_write) {
    disk_.frozen = true;
    {
        audit_log log = make();
        log.denied(about("a"));
        std::this_thread::sleep_for(20ms);
        log.finish(1ms);
    }
    disk_.frozen = false;
    // Letting go of the file is the last that the thread does with anything of this test.
    EXPECT_TRUE(comes_true([&] { return disk_.open_sinks == 0; }));
    EXPECT_EQ(disk_.lines().size(), 1U);
}

}  // namespace
}  // namespace monolock::server
