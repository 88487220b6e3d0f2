#pragma once

#include <atomic>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "server/http/task.hpp"
#include "server/shard.hpp"

namespace monolock::server::admin {

// How long a shard may take to begin with a question. A stalled one holds up no operator for
// longer, and a listing of many locks gets between its slices.
inline constexpr std::chrono::seconds answer_time_max{5};

// Something asked of a shard, for a coroutine of the control loop to await. The shard holds a slip:
// the way back, and whether the answer is still wanted; never anything that belongs to the control
// loop's thread.
template <class Answer>
class shard_question {
    enum class phase { asked, begun, given_up };

    // On the control loop's thread alone.
    struct mailbox {
        explicit mailbox(loop& home) : wake{home} {}
        loop_timer wake;
        std::optional<Answer> answer;
    };

public:
    // The shard's side; to be copied, and used on the shard's thread.
    class slip {
    public:
        // Before anything else: whether the answer is still wanted. If so, it will be waited for;
        // if not, nothing may be done.
        [[nodiscard]] bool begin() const noexcept {
            phase expected = phase::asked;
            return phase_->compare_exchange_strong(expected, phase::begun);
        }

        // Once, after begin() returned true.
        void answer(Answer with) const {
            boost::asio::post(*home_, [to = to_, with = std::move(with)]() mutable {
                if (const auto mail = to.lock()) {
                    mail->answer = std::move(with);
                    mail->wake.cancel();
                }
            });
        }

    private:
        friend class shard_question;
        slip(loop& home, std::shared_ptr<std::atomic<phase>> now, std::weak_ptr<mailbox> to)
            : home_{&home}, phase_{std::move(now)}, to_{std::move(to)} {}

        loop* home_;
        std::shared_ptr<std::atomic<phase>> phase_;
        std::weak_ptr<mailbox> to_;
    };

    explicit shard_question(loop& home)
        : home_{&home},
          phase_{std::make_shared<std::atomic<phase>>(phase::asked)},
          mail_{std::make_shared<mailbox>(home)} {}

    [[nodiscard]] slip for_shard() const { return {*home_, phase_, mail_}; }

    // On the control loop. Nothing: the shard did not begin in time, and will not.
    [[nodiscard]] http::task<std::optional<Answer>> wait() {
        while (!mail_->answer) {
            mail_->wake.expires_after(answer_time_max);
            co_await mail_->wake.async_wait(http::as_result);
            phase expected = phase::asked;
            if (!mail_->answer && phase_->compare_exchange_strong(expected, phase::given_up)) {
                co_return std::nullopt;
            }
        }
        co_return std::move(mail_->answer);
    }

private:
    loop* home_;
    std::shared_ptr<std::atomic<phase>> phase_;
    std::shared_ptr<mailbox> mail_;
};

// Asks a shard for what `find` says there, in one turn of its loop. If the shard has stalled,
// `find` is not called later either.
//
// A question is put together in a function like this one and not within a co_await: there g++ 12
// destroys a temporary function object twice.
template <class Answer>
[[nodiscard]] shard_question<Answer> ask(loop& home, shard& of, std::function<Answer()> find) {
    shard_question<Answer> question{home};
    of.ask([slip = question.for_shard(), find = std::move(find)] {
        if (slip.begin()) {
            slip.answer(find());
        }
    });
    return question;
}

}  // namespace monolock::server::admin
