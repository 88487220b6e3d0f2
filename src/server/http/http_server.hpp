#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <vector>

#include "posix/descriptor.hpp"
#include "server/http/connection.hpp"

namespace monolock::server::http {

// Serves HTTP on the control loop, within the limits of its service. When all connections are taken
// a new one still gets in, at the cost of the one that has been idle longest, else of the one that
// has been at its request longest, after a second at the most. A probe is answered whatever slow
// readers do.
class http_server {
public:
    http_server(loop& on, service of) : loop_{&on}, service_{std::move(of)} {}
    http_server(const http_server&) = delete;
    http_server& operator=(const http_server&) = delete;
    // The loop must not run any more.
    ~http_server() = default;

    // A non-blocking listening socket, from now on to the end. Before the loop runs.
    void listen(posix::descriptor listening);

    void connections_max(std::size_t count) noexcept { service_.bounds.connections_max = count; }

private:
    using connections =
        boost::intrusive::list<connection, boost::intrusive::constant_time_size<false>>;

    [[nodiscard]] task<void> accept_all(watched_descriptor* listening);
    [[nodiscard]] task<void> pause(std::chrono::milliseconds time);
    // Whether there is room for one more, or has been made. Who has only just asked, or come, is
    // left alone for so long.
    [[nodiscard]] bool make_room(std::chrono::steady_clock::time_point patient_until);
    void start(posix::descriptor accepted);

    loop* loop_;
    service service_;
    std::vector<std::unique_ptr<watched_descriptor>> listening_;
    connections connections_;
};

}  // namespace monolock::server::http
