#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "client/address_order.hpp"
#include "client/endpoint.hpp"
#include "client/reactor.hpp"
#include "client/target.hpp"

namespace monolock::detail {

// Asks the system's resolver on a thread of its own and hands the answer to everybody who waits by
// then. At most one question is under way, so that a resolver that hangs costs one thread and not
// one per attempt. Used with the reactor's mutex held; so are the callbacks.
class resolver : public std::enable_shared_from_this<resolver> {
public:
    using callback = std::function<void(const resolution&, reactor::guard&)>;

    resolver(std::weak_ptr<reactor> loop, config::tcp_address where);

    // False if no thread could be started; the callback is dropped then.
    [[nodiscard]] bool ask(callback then);

private:
    void answer(const resolution& found);

    std::weak_ptr<reactor> loop_;
    config::tcp_address where_;
    bool asking_ = false;
    std::vector<callback> waiting_;
};

// What the attempts of one client share about the way to its servers. Used with the reactor's mutex
// held.
struct routes {
    routes(const std::shared_ptr<reactor>& loop, const target& to);

    std::vector<std::shared_ptr<resolver>> names;  // of each place; null if it needs none
    address_order order;                           // of the places
};

}  // namespace monolock::detail
