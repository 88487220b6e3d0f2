#include "cli/admin/admin_channel.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <sstream>
#include <utility>

#include "cli/admin/admin_error.hpp"
#include "cli/admin/admin_socket.hpp"
#include "cli/exit_code.hpp"
#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t block_bytes = std::size_t{64} * 1024;
constexpr int interim_max = 20;  // before one response

deadline allowed(std::chrono::milliseconds time, const admin_limits& limits) {
    return std::min(std::chrono::steady_clock::now() + time, limits.give_up_at);
}

}  // namespace

// One connection and the response that is read from it. Beast knows the syntax; the bytes come
// and go through our own socket, whose waits end.
class http_stream {
public:
    http_stream(const config::address& to, const admin_limits& limits, int interrupt)
        : limits_{limits}, socket_{to, allowed(limits.connect_time_max, limits), interrupt} {}

    void ask(std::string_view method, std::string_view target) {
        http::request<http::empty_body> request;
        request.method_string({method.data(), method.size()});
        request.target({target.data(), target.size()});
        request.version(11);
        request.set(http::field::host, socket_.host());
        request.set(http::field::accept, "application/json, text/event-stream");
        if (method != "GET") {
            request.content_length(0);
        }
        std::ostringstream text;
        text << request;
        heard_ = false;
        interim_ = 0;
        body_limit_ = limits_.answer_bytes_max;
        expect_response();
        socket_.send(text.str(), allowed(limits_.connect_time_max, limits_));
    }

    // Whether a byte of the response has come.
    [[nodiscard]] bool heard() const noexcept { return heard_; }
    [[nodiscard]] bool is_kept() const { return parser_->keep_alive(); }

    [[nodiscard]] admin_answer read_whole() {
        const deadline by = allowed(limits_.answer_time_max, limits_);
        while (!parser_->is_done()) {
            read_some(by);
        }
        return {.status = parser_->get().result_int(), .body = std::move(parser_->get().body())};
    }

    // The status of a response whose body goes on.
    [[nodiscard]] unsigned read_head() {
        body_limit_ = boost::none;
        parser_->body_limit(body_limit_);
        const deadline by = allowed(limits_.answer_time_max, limits_);
        while (!parser_->is_header_done()) {
            read_some(by);
        }
        return parser_->get().result_int();
    }

    [[nodiscard]] bool is_event_stream() const {
        return parser_->get()[http::field::content_type].starts_with("text/event-stream");
    }

    // More of that body, at least a byte; nothing at its end.
    [[nodiscard]] std::string read_body(deadline by) {
        std::string& body = parser_->get().body();
        while (body.empty() && !parser_->is_done()) {
            read_some(by);
        }
        return std::exchange(body, {});
    }

private:
    void expect_response() {
        parser_.emplace();
        parser_->eager(true);
        parser_->body_limit(body_limit_);
    }

    // What comes before the response itself, and says nothing to us.
    void skip_interim() {
        const unsigned status = parser_->get().result_int();
        if (status == 101) {
            throw bad_answer{"it wants to speak another protocol"};
        }
        if (status < 200) {
            if (++interim_ > interim_max) {
                throw bad_answer{"nothing but interim answers"};
            }
            expect_response();
        }
    }

    void read_some(deadline by) {
        std::array<char, block_bytes> block{};  // NOLINT(readability-magic-numbers)
        const std::size_t size = socket_.receive(block, by);
        error_code failed;
        if (size == 0) {
            if (!heard_) {
                throw admin_error{exit_code::unreachable, "the connection was closed"};
            }
            if (parser_->got_some()) {
                parser_->put_eof(failed);
            }
            if (failed || !parser_->is_done()) {
                throw admin_error{exit_code::unreachable, "the answer breaks off"};
            }
            return;
        }
        heard_ = true;
        input_.append(block.data(), size);
        parse();
    }

    void parse() {
        std::size_t taken = 0;
        while (taken < input_.size() && !parser_->is_done()) {
            error_code failed;
            const std::size_t count = parser_->put(
                boost::asio::buffer(input_.data() + taken, input_.size() - taken), failed);
            taken += count;
            if (failed == http::error::need_more) {
                break;
            }
            if (failed == http::error::body_limit) {
                throw admin_error{exit_code::refused, "the answer is too large"};
            }
            if (failed) {
                throw bad_answer{failed.message()};
            }
            if (parser_->is_done()) {
                skip_interim();
            }
        }
        input_.erase(0, taken);
    }

    const admin_limits& limits_;
    admin_socket socket_;
    bool heard_ = false;
    std::string input_;
    int interim_ = 0;
    boost::optional<std::uint64_t> body_limit_;
    std::optional<http::response_parser<http::string_body>> parser_;
};

admin_channel::admin_channel(const std::string& address, admin_limits limits, int interrupt)
    : address_{address},
      where_{*config::parse_address(address)},
      limits_{limits},
      interrupt_{interrupt} {}

admin_channel::~admin_channel() = default;

std::unique_ptr<http_stream> admin_channel::connect() const {
    return std::make_unique<http_stream>(where_, limits_, interrupt_);
}

template <class Call>
auto admin_channel::named(Call call) const {
    try {
        return call();
    } catch (const admin_error& failed) {
        std::string where;
        telemetry::append_logfmt_value(where, address_);
        throw admin_error{failed.status(), where + ": " + failed.what()};
    }
}

admin_answer admin_channel::get(std::string_view target) {
    return named([&] {
        auto stream = std::exchange(kept_, nullptr);
        const bool reused = stream != nullptr;
        if (!reused) {
            stream = connect();
        }
        admin_answer made;
        try {
            stream->ask("GET", target);
            made = stream->read_whole();
        } catch (const too_late&) {
            throw;
        } catch (const admin_error&) {
            if (!reused || stream->heard()) {
                throw;
            }
            // The server had closed the idle connection.
            stream = connect();
            stream->ask("GET", target);
            made = stream->read_whole();
        }
        if (stream->is_kept()) {
            kept_ = std::move(stream);
        }
        return made;
    });
}

admin_answer admin_channel::change(std::string_view method, std::string_view target) {
    return named([&] {
        const auto stream = connect();  // a fresh one: what fails before it is sent is not done
        stream->ask(method, target);
        try {
            return stream->read_whole();
        } catch (const admin_error& failed) {
            throw admin_error{failed.status(), std::string{failed.what()} + change_unknown};
        }
    });
}

void admin_channel::begin_events(std::string_view target) {
    named([&] {
        splitter_ = {};
        events_ = connect();
        events_->ask("GET", target);
        if (const unsigned status = events_->read_head(); status != 200) {
            throw admin_error{status == 503 ? exit_code::unreachable : exit_code::refused,
                              "no events: the server answers " + std::to_string(status)};
        }
        if (!events_->is_event_stream()) {
            throw admin_error{exit_code::refused, "what answers is no event stream"};
        }
    });
}

server_event admin_channel::next_event() {
    return named([&] {
        while (true) {
            if (auto event = splitter_.next()) {
                return *std::move(event);
            }
            if (splitter_.pending_bytes() > limits_.event_bytes_max) {
                throw admin_error{exit_code::refused, "an event is too large"};
            }
            const std::string more = events_->read_body(allowed(limits_.silence_max, limits_));
            if (more.empty()) {
                throw admin_error{exit_code::unreachable, "the server has ended the stream"};
            }
            splitter_.feed(more);
        }
    });
}

}  // namespace monolock::cli
