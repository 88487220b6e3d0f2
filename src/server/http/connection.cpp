#include "server/http/connection.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

#include "server/http/request_reader.hpp"

namespace monolock::server::http {

namespace {

namespace beast = boost::beast;
using boost::system::error_code;
using progress = request_reader::progress;

// How long, and how much, a peer that was told the end and has taken everything may go on before it
// is cut off.
constexpr std::chrono::seconds linger_time_max{1};
constexpr std::size_t linger_bytes_max = std::size_t{64} * 1024;

constexpr std::size_t receive_bytes_max = std::size_t{4} * 1024;

// How often to look whether a peer takes what is there for it: nothing tells.
constexpr std::chrono::milliseconds glance_interval{250};

// The status line and the fields, to which `complete` adds how the body is framed.
template <class Complete>
std::string head_of(const response& what, unsigned version, bool keep_alive, Complete complete) {
    beast::http::response<beast::http::empty_body> head{static_cast<beast::http::status>(what.code),
                                                        version};
    head.set(beast::http::field::content_type, what.content_type);
    head.set(beast::http::field::cache_control, "no-store");
    head.set("X-Content-Type-Options", "nosniff");
    for (const field& each : what.fields) {
        head.set(each.name, each.value);
    }
    head.keep_alive(keep_alive);
    complete(head);
    std::ostringstream text;
    text << head.base();
    return std::move(text).str();
}

std::string chunk_of(std::string_view bytes) {
    std::array<char, 16> size{};
    const auto [end, failure] =
        std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16);
    std::string made{size.data(), end};
    made.reserve(made.size() + bytes.size() + 4);
    made += "\r\n";
    made += bytes;
    made += "\r\n";
    return made;
}

// Of a socket that is waiting for nothing, which would tell.
bool has_failed(int socket) noexcept {
    int failure = 0;
    socklen_t size = sizeof failure;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &size) != 0 || failure != 0;
}

}  // namespace

connection::connection(stream_socket&& socket, const service& of)
    : socket_{std::move(socket)},
      deadline_{socket_.get_executor()},
      input_{of.bounds.header_bytes_max + of.bounds.body_bytes_max},
      service_{&of},
      since_{std::chrono::steady_clock::now()} {}

task<void> connection::run() {
    std::chrono::seconds patience = service_->bounds.request_time_max;
    while (co_await serve_one(patience)) {
        patience = service_->bounds.idle_time_max;
    }
    co_await linger();
    deadline_.cancel();
    close();
}

void connection::abort() noexcept {
    error_code ignored;  // closed already
    socket_.set_option(boost::asio::socket_base::linger{true, 0}, ignored);
    close();
}

void connection::close() noexcept {
    unlink();
    error_code ignored;  // the descriptor is gone whatever close says
    socket_.close(ignored);
}

// Who sends one request on the heels of another is busy without a pause.
void connection::enter(phase next) noexcept {
    if (phase_ != next) {
        phase_ = next;
        since_ = std::chrono::steady_clock::now();
    }
}

void connection::after(std::chrono::nanoseconds time, void (connection::*act)()) {
    deadline_.expires_after(time);
    deadline_.async_wait([self = shared_from_this(), act](const error_code& stopped) {
        // A wait that ended just before it was renewed is on its way all the same.
        if (!stopped && self->deadline_.expiry() <= std::chrono::steady_clock::now()) {
            ((*self).*act)();
        }
    });
}

void connection::watch(std::optional<std::chrono::seconds> quiet_max) {
    quiet_max_ = quiet_max;
    taken_at_ = std::chrono::steady_clock::now();
    look();
}

// A peer that has everything is let go in good order: what it did not read yet stays readable.
void connection::look() {
    const auto now = std::chrono::steady_clock::now();
    const std::int64_t left = unsent();
    if (written_ - left > taken_) {
        taken_ = written_ - left;
        taken_at_ = now;
    }
    const auto quiet = now - taken_at_;
    if (left > 0) {
        if (quiet >= service_->bounds.response_time_max) {
            abort();
        } else {
            after(glance_interval, &connection::look);
        }
    } else if (quiet_max_ && quiet >= *quiet_max_) {
        close();
    } else if (quiet_max_) {
        after(*quiet_max_ - quiet, &connection::look);
    } else {
        deadline_.cancel();
    }
}

// TCP counts what was not acknowledged; a Unix socket what was not read, and memory beside the
// bytes, which falls when the peer reads all the same.
std::int64_t connection::unsent() noexcept {
    int count = 0;
    return ::ioctl(socket_.native_handle(), SIOCOUTQ, &count) == 0 ? count : 0;
}

task<bool> connection::serve_one(std::chrono::seconds patience) {
    error_code unknown;
    if (input_.size() == 0 && socket_.available(unknown) == 0) {
        enter(phase::idle);
        watch(patience);
        const auto [ended] = co_await socket_.async_wait(stream_socket::wait_read, as_result);
        if (ended) {
            co_return false;
        }
    }
    enter(phase::busy);
    request_reader reader{service_->bounds.header_bytes_max, service_->bounds.body_bytes_max};
    is_late_ = false;
    after(service_->bounds.request_time_max, &connection::be_late);
    auto got = reader.take(input_);
    while (got == progress::unfinished && !is_late_) {
        const bool alive = !reader.must_ask_for_body() || co_await ask_for_body();
        if (alive && co_await receive()) {
            got = reader.take(input_);
        } else if (!is_late_) {
            co_return false;
        }
    }
    if (got == progress::unfinished && !reader.has_begun()) {
        co_return false;  // an answer now would be taken for that to the next request
    }
    if (got != progress::complete) {
        response no = got == progress::refused
                          ? service_->refuse(reader.refused_with(), reader.why())
                          : service_->refuse(status::request_timeout, "the request took too long");
        co_return co_await write(std::move(no), manner{});
    }
    const manner how{
        .version = reader.version(), .body = !reader.is_head(), .keep_alive = reader.keep_alive()};
    request what = reader.release();
    after(service_->bounds.answer_time_max, &connection::abort);
    response answer = co_await answer_to(std::move(what));
    co_return co_await write(std::move(answer), how);
}

// Ends the wait for more of the request. One that has just ended by itself sees that it is late.
void connection::be_late() {
    is_late_ = true;
    error_code ignored;  // nothing was waiting
    socket_.cancel(ignored);
}

// Whether more of a request is there.
task<bool> connection::receive() {
    const std::size_t room = std::min(input_.max_size() - input_.size(), receive_bytes_max);
    const auto [failed, count] = co_await socket_.async_read_some(input_.prepare(room), as_result);
    input_.commit(count);
    co_return !failed;
}

// In the time of the request.
task<bool> connection::ask_for_body() {
    static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto bytes = boost::asio::buffer(text.data(), text.size());
    const auto [failed, count] = co_await socket_.async_write_some(bytes, as_result);
    written_ += static_cast<std::int64_t>(count);
    co_return !failed && count == text.size();
}

task<response> connection::answer_to(request what) {
    std::string failure;
    try {
        co_return co_await service_->answer(std::move(what));
    } catch (const std::exception& error) {
        failure = error.what();
    }
    service_->log->write(telemetry::log_level::error, "a request failed",
                         {{.key = "reason", .value = std::string_view{failure}}});
    co_return service_->refuse(status::internal_error, "internal error");
}

task<bool> connection::write(response what, manner how) {
    watch({});
    if (what.more && how.body) {
        co_return co_await write_in_pieces(std::move(what), how);
    }
    co_return co_await write_whole(std::move(what), how);
}

task<bool> connection::write_whole(response what, manner how) {
    std::string text = head_of(what, how.version, how.keep_alive, [&](auto& head) {
        if (!what.more) {
            head.content_length(what.body.size());
        }
    });
    if (how.body) {
        text += what.body;
    }
    how.keep_alive = co_await send(std::move(text)) && how.keep_alive;
    co_return how.keep_alive;
}

// In chunks; to a peer of HTTP/1.0, which knows none, until the end of the connection. A source
// that fails half way leaves the body without its end, which the peer can tell.
task<bool> connection::write_in_pieces(response what, manner how) {
    const bool chunked = how.version >= 11;
    how.keep_alive = how.keep_alive && chunked;
    std::string text =
        head_of(what, how.version, how.keep_alive, [&](auto& head) { head.chunked(chunked); });
    std::optional<std::string> piece{std::move(what.body)};
    bool written = co_await send(std::move(text));
    while (written && piece) {
        if (!piece->empty()) {  // an empty chunk would be the last
            std::string bytes = chunked ? chunk_of(*piece) : *piece;
            written = co_await send(std::move(bytes));
        }
        if (written) {
            piece = co_await what.more();
        }
    }
    if (written && chunked) {
        std::string last = "0\r\n\r\n";
        written = co_await send(std::move(last));
    }
    how.keep_alive = how.keep_alive && written;
    co_return how.keep_alive;
}

// Whether all of it is on its way.
task<bool> connection::send(std::string bytes) {
    if (unsent() == 0) {
        taken_at_ = std::chrono::steady_clock::now();  // until now there was nothing to take
    }
    for (std::size_t done = 0; done < bytes.size();) {
        look();  // small writes, too, are of no use to a peer that takes nothing
        after(glance_interval, &connection::look);
        const auto rest = boost::asio::buffer(bytes) + done;
        const auto [failed, count] = co_await socket_.async_write_some(rest, as_result);
        if (failed) {
            co_return false;
        }
        done += count;
        written_ += static_cast<std::int64_t>(count);
    }
    co_return true;
}

// A socket closed with unread input makes the kernel send a reset, which can destroy the response
// on its way; so sending is shut down first and what still comes is thrown away. A bounded amount,
// and for a bounded time once the peer has everything.
task<void> connection::linger() {
    error_code failed;
    socket_.shutdown(stream_socket::shutdown_send, failed);
    if (failed) {
        co_return;
    }
    watch(linger_time_max);
    std::array<std::byte, 4096> input{};
    for (std::size_t discarded = 0; !failed && discarded < linger_bytes_max;) {
        std::size_t count = 0;
        std::tie(failed, count) =
            co_await socket_.async_read_some(boost::asio::buffer(input), as_result);
        discarded += count;
    }
    if (!failed || failed == boost::asio::error::eof) {
        co_await wait_until_taken();
    }
}

// Of a peer that sends no more, or too much.
task<void> connection::wait_until_taken() {
    loop_timer timer{socket_.get_executor()};
    while (socket_.is_open() && unsent() > 0 && !has_failed(socket_.native_handle())) {
        timer.expires_after(glance_interval);
        co_await timer.async_wait(as_result);
    }
}

}  // namespace monolock::server::http
