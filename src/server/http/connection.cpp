#include "server/http/connection.hpp"

#include <array>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <exception>
#include <optional>
#include <utility>

namespace monolock::server::http {

namespace {

namespace beast = boost::beast;
using boost::system::error_code;

// How long, and how much, a peer that was told the end may go on before it is cut off.
constexpr std::chrono::seconds linger_time_max{1};
constexpr std::size_t linger_bytes_max = std::size_t{64} * 1024;

// What the peer is told of a request that could not be read; nothing if it is not there to hear it.
std::optional<status> status_of(error_code failed) {
    using beast::http::error;
    if (failed == error::header_limit || failed == error::buffer_overflow) {
        return status::fields_too_large;
    }
    if (failed == error::body_limit) {
        return status::content_too_large;
    }
    const bool unfinished = failed == error::end_of_stream || failed == error::partial_message;
    const bool malformed =
        failed.category() == beast::http::make_error_code(error::bad_method).category();
    return malformed && !unfinished ? std::optional{status::bad_request} : std::nullopt;
}

std::string_view view(beast::string_view text) noexcept {
    return {text.data(), text.size()};
}

request request_of(beast::http::request<beast::http::string_body>&& read) {
    request made{.method = std::string{view(read.method_string())},
                 .target = std::string{view(read.target())},
                 .fields = {},
                 .body = std::move(read.body())};
    for (const auto& each : read) {
        made.fields.push_back({.name = std::string{view(each.name_string())},
                               .value = std::string{view(each.value())}});
    }
    return made;
}

template <class Body>
beast::http::response<Body> head_of(const response& what, unsigned version) {
    beast::http::response<Body> head{static_cast<beast::http::status>(what.code), version};
    head.set(beast::http::field::content_type, what.content_type);
    head.set(beast::http::field::cache_control, "no-store");
    head.set("X-Content-Type-Options", "nosniff");
    for (const field& each : what.fields) {
        head.set(each.name, each.value);
    }
    return head;
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

// The connection has `time` from now for what follows; a byte at a time gains nothing.
void connection::allow(std::chrono::seconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([self = shared_from_this()](const error_code& stopped) {
        // A wait that ended just before it was renewed is on its way all the same.
        if (!stopped && self->deadline_.expiry() <= std::chrono::steady_clock::now()) {
            self->abort();
        }
    });
}

task<bool> connection::serve_one(std::chrono::seconds patience) {
    error_code unknown;
    if (input_.size() == 0 && socket_.available(unknown) == 0) {
        enter(phase::idle);
        allow(patience);
        const auto [ended] = co_await socket_.async_wait(stream_socket::wait_read, as_result);
        if (ended) {
            co_return false;
        }
    }
    enter(phase::busy);
    allow(service_->bounds.request_time_max);
    beast::http::request_parser<beast::http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(service_->bounds.header_bytes_max));
    parser.body_limit(service_->bounds.body_bytes_max);
    const auto [failed, count] =
        co_await beast::http::async_read(socket_, input_, parser, as_result);
    static_cast<void>(count);
    if (failed) {
        if (const auto told = status_of(failed)) {
            const std::string why =
                told == status::bad_request ? "malformed request" : failed.message();
            response no = service_->refuse(*told, why);
            co_return co_await write(std::move(no), manner{});
        }
        co_return false;
    }
    const manner how{.version = parser.get().version(),
                     .body = parser.get().method() != beast::http::verb::head,
                     .keep_alive = parser.get().keep_alive()};
    request what = request_of(parser.release());
    allow(service_->bounds.answer_time_max);
    response answer = co_await answer_to(std::move(what));
    co_return co_await write(std::move(answer), how);
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
    if (what.more && how.body) {
        co_return co_await write_in_pieces(std::move(what), how);
    }
    co_return co_await write_whole(std::move(what), how);
}

task<bool> connection::write_whole(response what, manner how) {
    allow(service_->bounds.response_time_max);
    error_code failed;
    if (how.body) {
        auto message = head_of<beast::http::string_body>(what, how.version);
        message.keep_alive(how.keep_alive);
        message.body() = std::move(what.body);
        message.prepare_payload();
        std::tie(failed, std::ignore) =
            co_await beast::http::async_write(socket_, message, as_result);
    } else {
        auto message = head_of<beast::http::empty_body>(what, how.version);
        message.keep_alive(how.keep_alive);
        if (!what.more) {
            message.content_length(what.body.size());
        }
        std::tie(failed, std::ignore) =
            co_await beast::http::async_write(socket_, message, as_result);
    }
    co_return how.keep_alive && !failed;
}

// In chunks; to a peer of HTTP/1.0, which knows none, until the end of the connection. A source
// that fails half way leaves the body without its end, which the peer can tell.
task<bool> connection::write_in_pieces(response what, manner how) {
    const bool chunked = how.version >= 11;
    how.keep_alive = how.keep_alive && chunked;
    auto message = head_of<beast::http::empty_body>(what, how.version);
    message.keep_alive(how.keep_alive);
    message.chunked(chunked);
    beast::http::response_serializer<beast::http::empty_body> head{message};
    allow(service_->bounds.response_time_max);
    const auto [unsent, head_bytes] =
        co_await beast::http::async_write_header(socket_, head, as_result);
    static_cast<void>(head_bytes);
    if (unsent) {
        co_return false;
    }
    error_code failed;
    std::optional<std::string> piece{std::move(what.body)};
    while (piece) {
        if (!piece->empty()) {  // an empty chunk would be the last
            allow(service_->bounds.response_time_max);
            const auto bytes = boost::asio::buffer(*piece);
            if (chunked) {
                const auto chunk = beast::http::make_chunk(bytes);
                std::tie(failed, std::ignore) =
                    co_await boost::asio::async_write(socket_, chunk, as_result);
            } else {
                std::tie(failed, std::ignore) =
                    co_await boost::asio::async_write(socket_, bytes, as_result);
            }
            if (failed) {
                co_return false;
            }
        }
        deadline_.cancel();  // the next piece comes when it comes
        piece = co_await what.more();
    }
    if (chunked) {
        allow(service_->bounds.response_time_max);
        const auto last = beast::http::make_chunk_last();
        std::tie(failed, std::ignore) = co_await boost::asio::async_write(socket_, last, as_result);
    }
    co_return how.keep_alive && !failed;
}

// A socket closed with unread input makes the kernel send a reset, which can destroy the response
// on its way; so sending is shut down first and what still comes is thrown away, for a bounded
// time.
task<void> connection::linger() {
    error_code failed;
    socket_.shutdown(stream_socket::shutdown_send, failed);
    allow(linger_time_max);
    std::array<std::byte, 4096> input{};
    for (std::size_t discarded = 0; !failed && discarded < linger_bytes_max;) {
        std::size_t count = 0;
        std::tie(failed, count) =
            co_await socket_.async_read_some(boost::asio::buffer(input), as_result);
        discarded += count;
    }
}

}  // namespace monolock::server::http
