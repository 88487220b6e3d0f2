#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/http/message.hpp"
#include "server/logger.hpp"
#include "server/loop.hpp"

namespace monolock::server::http {

// TCP or Unix.
using stream_socket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, loop::executor_type>;

// Everything that a peer can make grow, or last.
struct limits {
    std::size_t connections_max = 16;
    std::size_t header_bytes_max = std::size_t{8} * 1024;  // request line and fields: 431
    std::size_t body_bytes_max = std::size_t{4} * 1024;    // of a request: 413
    std::chrono::seconds request_time_max{5};              // from its first byte to its last
    std::chrono::seconds answer_time_max{30};              // of the endpoint, to find its response
    std::chrono::seconds response_time_max{10};  // without a byte taken of what was written
    std::chrono::seconds idle_time_max{60};      // between two requests
};

// What all connections of a listener share. The log must outlive them.
struct service {
    endpoint answer;
    refusal refuse;
    limits bounds;
    logger* log;
};

// One HTTP connection: reads a request, has it answered, writes the response, and so on. All of it
// on the loop's thread.
class connection : public std::enable_shared_from_this<connection>,
                   public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
public:
    // To be owned by a shared_ptr. The service must outlive the connection.
    connection(stream_socket&& socket, const service& of);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() = default;

    // Serves until the peer or a limit ends it; whoever starts it keeps the connection alive until
    // it returns. Throws what a source of pieces throws: the connection is then to be let go.
    [[nodiscard]] task<void> run();

    // Closes at once, whatever is under way; run() returns soon afterwards. What the peer has not
    // taken is forgotten rather than kept by the kernel, or slow readers that come again and again
    // would fill its memory.
    void abort() noexcept;

    // The same, and what was sent arrives all the same.
    void close() noexcept;

    // Between two requests, or before the first, with nothing that the peer has yet to take.
    [[nodiscard]] bool is_idle() noexcept { return phase_ == phase::idle && unsent() == 0; }
    // Since when it has been idle, or busy.
    [[nodiscard]] std::chrono::steady_clock::time_point since() const noexcept { return since_; }

private:
    enum class phase { idle, busy };

    // How a request wants its response.
    struct manner {
        unsigned version = 11;
        bool body = true;  // false for HEAD
        bool keep_alive = false;
    };

    // Whether the connection is good for more.
    [[nodiscard]] task<bool> serve_one(std::chrono::seconds patience);
    [[nodiscard]] task<bool> ask_for_body();
    [[nodiscard]] task<bool> receive();
    void be_late();
    [[nodiscard]] task<bool> write(response what, manner how);
    [[nodiscard]] task<bool> write_whole(response what, manner how);
    [[nodiscard]] task<bool> write_in_pieces(response what, manner how);

    [[nodiscard]] task<response> answer_to(request what);
    [[nodiscard]] task<bool> send(std::string bytes);
    [[nodiscard]] task<void> linger();
    [[nodiscard]] task<void> wait_until_taken();
    void enter(phase next) noexcept;

    // What is to happen then, unless something else is agreed before.
    void after(std::chrono::nanoseconds time, void (connection::*act)());
    // From now on the peer has to take what was written, at whatever pace, and when it has, may be
    // quiet for so long; absent: without a bound.
    void watch(std::optional<std::chrono::seconds> quiet_max);
    void look();
    // Bytes that were written and that the peer has not taken.
    [[nodiscard]] std::int64_t unsent() noexcept;

    stream_socket socket_;
    loop_timer deadline_;
    std::int64_t written_ = 0;
    std::int64_t taken_ = 0;  // the most that was seen
    std::chrono::steady_clock::time_point taken_at_;
    std::optional<std::chrono::seconds> quiet_max_;
    boost::beast::flat_buffer input_;
    const service* service_;
    std::chrono::steady_clock::time_point since_;
    phase phase_ = phase::idle;
    bool is_late_ = false;  // the request
};

}  // namespace monolock::server::http
