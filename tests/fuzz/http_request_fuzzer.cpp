// Whatever bytes come to an HTTP port: whole and in pieces they must be the same request or none,
// and a request must end where its own framing says, so that nobody's body is taken for somebody's
// next request.

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/ip_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "server/http/request_reader.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace http = monolock::server::http;
using fuzz::require;
using progress = http::request_reader::progress;

// Small, so that the fuzzer reaches both.
constexpr std::size_t header_max = 256;
constexpr std::size_t body_max = 64;

struct outcome {
    progress what = progress::unfinished;
    std::optional<http::request> read;
    http::status refused_with{};
    bool keep_alive = false;
    std::size_t used = 0;
};

outcome read(const fuzz::cut_input& input, bool in_pieces) {
    boost::beast::flat_buffer buffer{header_max + body_max};
    http::request_reader reader{header_max, body_max};
    outcome made;
    std::size_t fed = 0;
    input.feed(in_pieces, [&](fuzz::bytes piece) {
        while (!piece.empty() && made.what == progress::unfinished) {
            const auto some =
                piece.first(std::min(piece.size(), buffer.max_size() - buffer.size()));
            require(!some.empty());  // a full buffer is refused
            buffer.commit(boost::asio::buffer_copy(buffer.prepare(some.size()),
                                                   boost::asio::buffer(some.data(), some.size())));
            piece = piece.subspan(some.size());
            fed += some.size();
            made.what = reader.take(buffer);
        }
        return made.what == progress::unfinished;
    });
    made.used = fed - buffer.size();
    if (made.what == progress::complete) {
        made.keep_alive = reader.keep_alive();
        made.read = reader.release();
    } else if (made.what == progress::refused) {
        made.refused_with = reader.refused_with();
        require(made.refused_with != http::status::ok && !reader.why().empty());
    }
    return made;
}

bool is_body_too_large(const outcome& made) {
    return made.what == progress::refused && made.refused_with == http::status::content_too_large;
}

// What is no request may be refused sooner or later, and for one or the other of its mistakes:
// pieces wait for the end of the header, and Beast counts a chunk twice against the bound of a body
// when it looks twice at an extension whose quotes are not closed. The bound of the header is the
// same in both.
void require_same(const outcome& one, const outcome& other) {
    if (!one.read || !other.read) {
        const outcome& refused = one.read ? other : one;
        require((!one.read && !other.read) || is_body_too_large(refused));
        return;
    }
    require(one.used == other.used && one.keep_alive == other.keep_alive);
    require(one.read->method == other.read->method && one.read->target == other.read->target);
    require(one.read->body == other.read->body);
    require(std::ranges::equal(one.read->fields, other.read->fields,
                               [](const http::field& left, const http::field& right) {
                                   return left.name == right.name && left.value == right.value;
                               }));
}

// Takes the text up to a CRLF, and that; the CRLF must be there.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find("\r\n");
    require(end != std::string_view::npos);
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    return line;
}

std::size_t number_of(std::string_view digits, unsigned base) {
    std::size_t value = 0;
    for (const char digit : digits) {
        require(fuzz::is_hex(digit));
        const auto low =
            static_cast<unsigned>(fuzz::is_digit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
        require(low < base);
        value = value * base + low;
        require(value <= body_max);
    }
    require(!digits.empty());
    return value;
}

// Takes a chunked body off the text.
std::string take_chunks(std::string_view& text) {
    std::string body;
    for (;;) {
        const std::string_view head = take_line(text);
        const auto size_end = std::ranges::find_if_not(head, fuzz::is_hex);
        const std::size_t size = number_of({head.begin(), size_end}, 16);
        if (size == 0) {
            break;
        }
        require(text.size() >= size);
        body += text.substr(0, size);
        text.remove_prefix(size);
        require(take_line(text).empty());
    }
    while (!take_line(text).empty()) {  // trailers
    }
    return body;
}

// Content-Length may say the same number again, in another line or as a list (RFC 9110, section
// 8.6). A member without digits is no number.
std::size_t length_of(const std::vector<std::string_view>& lengths) {
    std::optional<std::size_t> size;
    for (const std::string_view each : lengths) {
        std::vector<std::string> members;
        boost::split(members, each, boost::is_any_of(","));
        for (const std::string& member : members) {
            const std::size_t value =
                number_of(boost::trim_copy_if(member, boost::is_any_of(" \t")), 10);
            require(value == size.value_or(value));
            size = value;
        }
    }
    return size.value_or(0);
}

// By RFC 9112, sections 2.2 and 6, with no more than the text at hand.
void check_framing(const http::request& made, std::string_view used) {
    while (used.starts_with("\r\n")) {
        used.remove_prefix(2);
    }
    const std::size_t head = used.find("\r\n\r\n");
    require(head != std::string_view::npos);
    std::string_view rest = used.substr(head + 4);
    const auto encodings = made.values("Transfer-Encoding");
    const auto lengths = made.values("Content-Length");
    require(encodings.empty() || lengths.empty());
    require(encodings.size() <= 1);
    if (!encodings.empty()) {
        require(made.body == take_chunks(rest));
    } else {
        const std::size_t size = length_of(lengths);
        require(made.body == rest.substr(0, size) && made.body.size() == size);
        rest.remove_prefix(size);
    }
    require(rest.empty());
}

void check_request(const http::request& made) {
    const auto has_no = [](std::string_view text, std::string_view letters) {
        return text.find_first_of(letters) == std::string_view::npos;
    };
    using namespace std::string_view_literals;
    require(!made.method.empty() && has_no(made.method, " \r\n\0"sv));
    require(has_no(made.target, " \r\n\0"sv));
    for (const http::field& each : made.fields) {
        require(!each.name.empty() && has_no(each.name, " :\r\n\0"sv));
        require(has_no(each.value, "\r\n\0"sv));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::cut_input input{data, size};
    const outcome whole = read(input, false);
    require_same(whole, read(input, true));
    if (whole.read) {
        check_request(*whole.read);
        check_framing(*whole.read, input.text().substr(0, whole.used));
    }
    return 0;
}
