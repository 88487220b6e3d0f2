#include "server/failover/role_journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace monolock::server {
namespace {

using namespace std::chrono_literals;
using coordination::role;
using testing::ElementsAre;
using testing::IsEmpty;

class role_journal_test : public testing::Test {
protected:
    std::vector<std::string> told(const role_status& now, std::chrono::nanoseconds at = 0s) {
        lines_.clear();
        subject_.tell(now, coordination::time_point{1h + at});
        return lines_;
    }

private:
    static std::string text_of(const telemetry::log_value& value) {
        const auto* const text = std::get_if<std::string_view>(&value);
        if (text != nullptr) {
            return std::string{*text};
        }
        const auto* const number = std::get_if<std::int64_t>(&value);
        return number != nullptr ? std::to_string(*number)
                                 : std::to_string(std::get<std::uint64_t>(value));
    }

    std::vector<std::string> lines_;
    role_journal subject_{
        "a", [this](telemetry::log_level, std::string_view message,
                    std::initializer_list<telemetry::log_field> fields) {
            std::string line{message};
            for (const auto& each : fields) {
                line.append(" ").append(each.key).append("=").append(text_of(each.value));
            }
            lines_.push_back(std::move(line));
        }};
};

role_status holds(std::string who, bool renewed) {
    return {.active_server = std::move(who), .holder_has_renewed = renewed};
}

// Two that win and give up in turn put the key dozens of times in a second.
TEST_F(role_journal_test, tells_of_another_server_once_it_has_renewed_and_when_it_is_another) {
    EXPECT_THAT(told(holds("b", false)), IsEmpty());
    EXPECT_THAT(told(holds("", false)), IsEmpty());
    EXPECT_THAT(told(holds("b", true)), ElementsAre("another server is active name=b"));
    for (int again = 0; again < 3; ++again) {
        EXPECT_THAT(told(holds("a", true)), IsEmpty()) << "its own, which it lost";
        EXPECT_THAT(told(holds("", false)), IsEmpty());
        EXPECT_THAT(told(holds("c", false)), IsEmpty());
        EXPECT_THAT(told(holds("b", true)), IsEmpty());
    }
    EXPECT_THAT(told(holds("c", true)), ElementsAre("another server is active name=c"));
    role_status itself = holds("a", true);
    itself.role = role::active;
    EXPECT_THAT(told(itself), IsEmpty()) << "who opens says so";
    EXPECT_THAT(told(holds("c", true)), ElementsAre("another server is active name=c"));
}

TEST_F(role_journal_test, tells_that_it_waits_and_why_it_did_for_nothing) {
    role_status waits{.role = role::waiting,
                      .term = coordination::term{7},
                      .active_server = "a",
                      .holder_has_renewed = false,
                      .opens_in = 4s};
    EXPECT_THAT(told(waits), IsEmpty());
    waits.holder_has_renewed = true;
    const std::string line =
        "this server has the key, and waits until the one before it is over for certain term=";
    EXPECT_THAT(told(waits), ElementsAre(line + "7 waits_ms=4000"));
    waits.opens_in = 3s;
    EXPECT_THAT(told(waits), IsEmpty());

    role_status lost{.last_loss = "the key is gone"};
    const std::string loss = "this server lost the key before it was active reason=";
    EXPECT_THAT(told(lost), ElementsAre(loss + "the key is gone"));
    EXPECT_THAT(told(lost), IsEmpty());
    waits.term = coordination::term{9};
    EXPECT_THAT(told(waits), ElementsAre(line + "9 waits_ms=3000"));
    EXPECT_THAT(told(lost), IsEmpty()) << "for the same reason";
    static_cast<void>(told(waits));
    lost.last_loss = "the lease has ended";
    EXPECT_THAT(told(lost), ElementsAre(loss + "the lease has ended"));
}

role_status fails(std::string why, std::uint64_t errors) {
    return {.etcd_errors = errors, .last_error = std::move(why)};
}

TEST_F(role_journal_test, tells_why_etcd_fails_when_the_reason_is_another_and_each_minute) {
    const std::string line = "etcd does not do what it is asked reason=";
    EXPECT_THAT(told(fails("refused", 1), 0s), ElementsAre(line + "refused etcd_errors=1"));
    EXPECT_THAT(told(fails("refused", 1), 70s), IsEmpty()) << "nothing has happened";
    EXPECT_THAT(told(fails("refused", 2), 59s), IsEmpty());
    EXPECT_THAT(told(fails("refused", 3), 60s), ElementsAre(line + "refused etcd_errors=3"));
    EXPECT_THAT(told(fails("no answer", 4), 62s), IsEmpty());
    EXPECT_THAT(told(fails("no answer", 5), 65s), ElementsAre(line + "no answer etcd_errors=5"));
    EXPECT_THAT(told(fails("", 5), 66s),
                ElementsAre("etcd does what it is asked again etcd_errors=5"));
    EXPECT_THAT(told(fails("", 5), 67s), IsEmpty());
    EXPECT_THAT(told(fails("refused", 6), 68s), IsEmpty());
    EXPECT_THAT(told(fails("", 6), 69s), IsEmpty()) << "nobody was told that it failed";
    EXPECT_THAT(told(fails("refused", 7), 90s), ElementsAre(line + "refused etcd_errors=7"));
}

}  // namespace
}  // namespace monolock::server
