#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/endpoint.hpp"
#include "client/reactor.hpp"
#include "client/wire.hpp"
#include "monolock/client.hpp"

namespace monolock::detail {

// client_options, checked and taken apart. Does not change once made.
struct target {
    // Throws monolock::error.
    explicit target(client_options given);

    client_options options;
    config::address where;
    std::optional<std::vector<endpoint>> endpoints;  // nothing: the host has to be resolved
    std::optional<endpoint> local;
    std::optional<security> secured;  // nothing: plain
};

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

}  // namespace monolock::detail
