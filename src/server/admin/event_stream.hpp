#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "server/admin/activity.hpp"
#include "server/admin/shard_question.hpp"

namespace monolock::server::admin {

// Server-sent events for one listener: once a second what went on, and in between the ownership
// changes since the second before, by their time. On the control loop. A shard that stalls is left
// out; changes that are not shown are counted.
class event_stream {
public:
    static constexpr std::chrono::seconds interval{1};
    // Of each shard and each second, the latest. More than this people do not read, and to catch up
    // with them later would be to show the past.
    static constexpr std::size_t changes_max = 256;

    // The surroundings must outlive it. It begins with the last so many changes of before.
    event_stream(loop& on, shard_surroundings& around, std::size_t recent);

    // The events of the next second, in their wire format; nothing once it was ended.
    [[nodiscard]] http::task<std::optional<std::string>> next();

    void end();
    [[nodiscard]] core::time_point begun_at() const noexcept { return begun_at_; }

private:
    struct news {
        std::vector<ownership_change> changes;
        std::uint64_t next = 0;
    };

    // What all shards together have to tell.
    struct batch {
        std::vector<ownership_change> changes;  // by time
        std::uint64_t lost = 0;
    };

    [[nodiscard]] shard_question<news> ask_for_news(shard& of,
                                                    std::optional<std::uint64_t> from) const;
    [[nodiscard]] http::task<batch> learn();
    void leave_recent(batch& of) const;
    void append_activity(std::string& out);

    loop* loop_;
    shard_surroundings* around_;
    std::size_t recent_;
    loop_timer timer_;
    core::time_point begun_at_;
    std::vector<std::optional<std::uint64_t>> next_;  // of each shard; absent: from now on
    activity last_;
    core::time_point last_at_;
    bool opened_ = false;
    bool ended_ = false;
};

}  // namespace monolock::server::admin
