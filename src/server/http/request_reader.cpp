#include "server/http/request_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <string_view>
#include <utility>

#include "server/http/target.hpp"

namespace monolock::server::http {

namespace {

namespace beast = boost::beast;
using boost::system::error_code;

std::string_view view(beast::string_view text) noexcept {
    return {text.data(), text.size()};
}

// A request with two hosts keeps them, for whoever minds.
void set_host(request& of, std::string host) {
    field* found = nullptr;
    for (field& each : of.fields) {
        if (!beast::iequals(each.name, "Host")) {
            continue;
        }
        if (found != nullptr) {
            return;
        }
        found = &each;
    }
    if (found == nullptr) {
        found = &of.fields.emplace_back(field{.name = "Host", .value = {}});
    }
    found->value = std::move(host);
}

}  // namespace

request_reader::request_reader(std::size_t header_bytes_max, std::size_t body_bytes_max)
    : header_bytes_left_{header_bytes_max} {
    parser_.header_limit(static_cast<std::uint32_t>(header_bytes_max));
    parser_.body_limit(body_bytes_max);
}

// The parser's own limit is one of what it has not taken yet, and it takes each line that is whole.
// So it sees no more than what is left of ours.
error_code request_reader::take_header(beast::flat_buffer& input) {
    const auto input_text = [&input] {
        return std::string_view{static_cast<const char*>(input.data().data()), input.size()};
    };
    const auto take = [&, this](std::size_t count) {
        input.consume(count);
        header_bytes_left_ -= count;
    };
    if (!parser_.got_some()) {
        while (header_bytes_left_ >= 2 && input_text().starts_with("\r\n")) {
            take(2);
        }
        if (input_text() == "\r") {
            return beast::http::error::need_more;
        }
    }
    error_code failed;
    const auto seen = boost::asio::buffer(input.cdata(), header_bytes_left_);
    const bool is_all = seen.size() == header_bytes_left_;
    take(parser_.put(seen, failed));
    return failed == beast::http::error::need_more && is_all ? beast::http::error::header_limit
                                                             : failed;
}

error_code request_reader::take_body(beast::flat_buffer& input) {
    // Less than this is never the rest of such a body, and the parser of Boost 1.81 asserts that it
    // does not get less of its last chunk.
    constexpr std::size_t last_chunk_bytes = 5;
    if (input.size() < (parser_.chunked() ? last_chunk_bytes : 1)) {
        return beast::http::error::need_more;
    }
    error_code failed;
    parser_.eager(true);
    input.consume(parser_.put(input.data(), failed));
    return failed;
}

request_reader::progress request_reader::take(beast::flat_buffer& input) {
    using beast::http::error;
    error_code failed;
    if (!parser_.is_header_done()) {
        failed = take_header(input);
    }
    if (parser_.is_header_done() && !is_framed_well()) {
        return refuse(status::bad_request, "a transfer encoding other than chunked");
    }
    if (!failed && !parser_.is_done()) {
        failed = take_body(input);
    }
    if (failed == error::header_limit) {
        return refuse(status::fields_too_large, failed.message());
    }
    if (failed == error::body_limit) {
        return refuse(status::content_too_large, failed.message());
    }
    if (failed && failed != error::need_more) {
        return refuse(status::bad_request, "malformed request");
    }
    if (parser_.is_done()) {
        return progress::complete;
    }
    if (input.size() == input.max_size()) {
        return refuse(status::fields_too_large, "a line is too long");
    }
    return progress::unfinished;
}

request_reader::progress request_reader::refuse(status with, std::string why) {
    status_ = with;
    why_ = std::move(why);
    return progress::refused;
}

// The parser takes an encoding that it does not know for none.
bool request_reader::is_framed_well() const {
    const auto [begin, end] = parser_.get().equal_range(beast::http::field::transfer_encoding);
    if (begin == end) {
        return true;
    }
    return std::next(begin) == end && beast::iequals(begin->value(), "chunked") &&
           parser_.get().version() >= 11;
}

bool request_reader::must_ask_for_body() {
    if (asked_ || !parser_.is_header_done()) {
        return false;
    }
    asked_ = true;
    return parser_.get().version() >= 11 &&
           beast::iequals(parser_.get()[beast::http::field::expect], "100-continue");
}

bool request_reader::is_head() const {
    return parser_.get().method() == beast::http::verb::head;
}

request request_reader::release() {
    auto read = parser_.release();
    request made{.method = std::string{view(read.method_string())},
                 .target = std::string{view(read.target())},
                 .fields = {},
                 .body = std::move(read.body())};
    for (const auto& each : read) {
        made.fields.push_back({.name = std::string{view(each.name_string())},
                               .value = std::string{view(each.value())}});
    }
    if (auto absolute = split_absolute(made.target)) {
        made.target = std::move(absolute->origin_form);
        set_host(made, std::move(absolute->authority));
    }
    return made;
}

}  // namespace monolock::server::http
