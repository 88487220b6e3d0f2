#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <string>

#include "server/http/message.hpp"

namespace monolock::server::http {

// Makes a request of what arrives, however it is cut. Reads no socket.
class request_reader {
public:
    enum class progress { unfinished, complete, refused };

    request_reader(std::size_t header_bytes_max, std::size_t body_bytes_max);

    // Takes what belongs to the request out of the input, with empty lines before it (RFC
    // 9112, 2.2); what follows it stays there. When it is refused where the next request would
    // begin is not known.
    [[nodiscard]] progress take(boost::beast::flat_buffer& input);

    // Whether there was anything of a request yet: empty lines are nothing.
    [[nodiscard]] bool has_begun() const { return parser_.got_some(); }

    // Of a refused one.
    [[nodiscard]] status refused_with() const noexcept { return status_; }
    [[nodiscard]] const std::string& why() const noexcept { return why_; }

    // Of one whose header is there: whether its sender holds the body back until it is asked for
    // it. True once.
    [[nodiscard]] bool must_ask_for_body();

    // Of a complete one.
    [[nodiscard]] unsigned version() const { return parser_.get().version(); }
    [[nodiscard]] bool keep_alive() const { return parser_.get().keep_alive(); }
    [[nodiscard]] bool is_head() const;

    // Of a complete one, once. A target that names the host, as it is sent to a proxy, is replaced
    // by its path and query, and the Host by the one it names (RFC 9112, 3.2.2).
    [[nodiscard]] request release();

private:
    [[nodiscard]] boost::system::error_code take_header(boost::beast::flat_buffer& input);
    [[nodiscard]] boost::system::error_code take_body(boost::beast::flat_buffer& input);
    [[nodiscard]] progress refuse(status with, std::string why);
    [[nodiscard]] bool is_framed_well() const;

    boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
    std::size_t header_bytes_left_;  // of its limit
    bool asked_ = false;
    status status_ = status::bad_request;
    std::string why_;
};

}  // namespace monolock::server::http
