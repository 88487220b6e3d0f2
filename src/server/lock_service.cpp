#include "server/lock_service.hpp"

#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "core/assert.hpp"

namespace monolock::server {

void on_every_shard(loop& control, const shard_surroundings& around,
                    void (shard::*step)(shard::callback), shard::callback then) {
    const auto left = std::make_shared<std::size_t>(around.shards.size());  // the loop's alone
    for (const auto& each : around.shards) {
        ((*each).*step)([&control, left, then] {
            boost::asio::post(control, [left, then] {
                if (--*left == 0) {
                    then();
                }
            });
        });
    }
}

void lock_service::open(listener port) {
    MONOLOCK_ASSERT(stage_ == stage::closed);
    port_.emplace(std::move(port));
    stage_ = stage::open;
    for (const auto& each : around_->shards) {
        each->begin_serving();
    }
    // What the first that accepts hands over to the others is posted behind that.
    for (const auto& each : around_->shards) {
        std::vector<posix::descriptor> sockets;
        for (const listening_socket& socket : port_->sockets()) {
            sockets.push_back(duplicate(socket));
        }
        each->open(std::move(sockets));
    }
}

void lock_service::close(std::optional<core::nanoseconds> patience, closing_callback closed) {
    closed_.push_back(std::move(closed));
    patience_ = patience;
    switch (stage_) {
        case stage::closed:
            boost::asio::post(*loop_, [this] { finish(outcome::all_ended); });
            return;
        case stage::open:
            stage_ = stage::stopping_grants;
            port_->close();
            // Whoever was late with the first step may be in time with the second.
            on_all_shards(&shard::begin_drain, first_step_time_max,
                          [this](outcome) { end_sessions(); });
            return;
        case stage::stopping_grants:
            return;  // the second step will know
        case stage::ending_sessions:
            if (patience) {
                go_on_after(*patience, [this](outcome how) { finish(how); });
            }
            return;
    }
}

void lock_service::end_sessions() {
    stage_ = stage::ending_sessions;
    on_all_shards(&shard::finish_drain, patience_, [this](outcome how) { finish(how); });
}

void lock_service::await_last_connection(core::nanoseconds patience, callback gone) {
    MONOLOCK_ASSERT(stage_ == stage::closed);
    on_all_shards(&shard::await_last_connection, patience, [this, gone = std::move(gone)](outcome) {
        ++step_;  // once
        gone();
    });
}

void lock_service::finish(outcome how) {
    ++step_;
    timer_.cancel();
    port_.reset();
    stage_ = stage::closed;
    for (const closing_callback& each : std::exchange(closed_, {})) {
        each(how);
    }
}

void lock_service::on_all_shards(void (shard::*step)(shard::callback),
                                 std::optional<core::nanoseconds> patience, closing_callback then) {
    on_every_shard(*loop_, *around_, step, [this, number = ++step_, then] {
        if (number == step_) {
            then(outcome::all_ended);
        }
    });
    timer_.cancel();
    if (patience) {
        go_on_after(*patience, std::move(then));
    }
}

// Unless the step that is under way now is over by then.
void lock_service::go_on_after(core::nanoseconds patience, closing_callback then) {
    timer_.expires_after(patience);
    timer_.async_wait(
        [this, number = step_, then = std::move(then)](const boost::system::error_code& stopped) {
            if (!stopped && number == step_) {
                then(outcome::some_stalled);
            }
        });
}

const std::vector<listening_socket>& lock_service::sockets() const noexcept {
    static const std::vector<listening_socket> none;
    return port_ ? port_->sockets() : none;
}

}  // namespace monolock::server
