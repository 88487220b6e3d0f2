#include "client/routes.hpp"

#include <utility>

#include "client/thread.hpp"

namespace monolock::detail {

resolver::resolver(std::weak_ptr<reactor> loop, config::tcp_address where)
    : loop_{std::move(loop)}, where_{std::move(where)} {}

bool resolver::ask(callback then) {
    if (!asking_) {
        asking_ = start_detached_thread(
            [self = shared_from_this()] { self->answer(resolve(self->where_)); });
        if (!asking_) {
            return false;
        }
    }
    waiting_.push_back(std::move(then));
    return true;
}

void resolver::answer(const resolution& found) {
    const auto loop = loop_.lock();
    if (!loop) {
        return;  // the client is gone, and nobody waits
    }
    auto held = loop->lock();
    asking_ = false;
    for (const callback& then : std::exchange(waiting_, {})) {
        then(found, held);
    }
}

routes::routes(const std::shared_ptr<reactor>& loop, const target& to) : order{to.places.size()} {
    for (const place& each : to.places) {
        names.push_back(each.endpoints ? nullptr
                                       : std::make_shared<resolver>(
                                             loop, std::get<config::tcp_address>(each.where)));
    }
}

}  // namespace monolock::detail
