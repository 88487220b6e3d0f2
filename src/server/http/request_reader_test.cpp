#include "server/http/request_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace monolock::server::http {
namespace {

using progress = request_reader::progress;

constexpr std::size_t header_max = 256;
constexpr std::size_t body_max = 64;

// What becomes of a text that arrives in pieces of that size.
struct outcome {
    progress what = progress::unfinished;
    std::optional<request> read;
    std::size_t left = 0;
};

outcome read(std::string_view text, std::size_t piece) {
    boost::beast::flat_buffer input{header_max + body_max};
    request_reader reader{header_max, body_max};
    outcome made;
    while (made.what == progress::unfinished && !text.empty()) {
        const std::size_t room = input.max_size() - input.size();
        const std::string_view some = text.substr(0, std::min(piece, room));
        input.commit(boost::asio::buffer_copy(input.prepare(some.size()),
                                              boost::asio::buffer(some.data(), some.size())));
        text.remove_prefix(some.size());
        made.what = reader.take(input);
    }
    made.left = input.size() + text.size();
    if (made.what == progress::complete) {
        made.read = reader.release();
    }
    return made;
}

TEST(request_reader, however_it_is_cut) {
    const std::string head = "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const auto& [text, body] :
         {std::pair{head + "2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", "abc"},
          std::pair{head + "0\r\n\r\n", ""}, std::pair{head + "0\r\nX: y\r\n\r\n", ""},
          std::pair{std::string{"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"}, "ab"}}) {
        for (std::size_t piece = 1; piece <= text.size() + 3; ++piece) {
            const auto made = read(text + "GET", piece);
            ASSERT_EQ(made.what, progress::complete) << text << piece;
            EXPECT_EQ(made.read->body, body);
            EXPECT_EQ(made.left, 3U) << "of the next";
        }
    }
}

TEST(request_reader, a_length_may_be_said_again_but_not_otherwise) {
    const auto with = [](std::string_view lengths) {
        return "POST /x HTTP/1.1\r\nContent-Length: " + std::string{lengths} + "\r\n\r\nab";
    };
    for (const std::string_view same : {"2,2", "2 ,\t02", "2\r\nContent-Length: 2"}) {
        for (std::size_t piece = 1; piece <= with(same).size() + 3; ++piece) {
            const auto made = read(with(same) + "GET", piece);
            ASSERT_EQ(made.what, progress::complete) << same << piece;
            EXPECT_EQ(made.read->body, "ab");
            EXPECT_EQ(made.left, 3U) << "of the next";
        }
    }
    for (const std::string_view other :
         {"2,1", "1,2", "2\r\nContent-Length: 1", "2,", ",2", "2,,2", "2 2", "+2", "0x2", ""}) {
        for (std::size_t piece = 1; piece <= with(other).size(); ++piece) {
            EXPECT_EQ(read(with(other), piece).what, progress::refused) << other << piece;
        }
    }
}

TEST(request_reader, a_target_that_names_a_host_replaces_the_host) {
    const auto hosts = [](std::string_view fields) {
        const auto made =
            read("GET http://named:1/x?y HTTP/1.1\r\n" + std::string{fields} + "\r\n", 1000);
        EXPECT_EQ(made.read->target, "/x?y");
        std::string all;
        for (const std::string_view each : made.read->values("Host")) {
            all += std::string{each} + ' ';
        }
        return all;
    };
    EXPECT_EQ(hosts(""), "named:1 ");
    EXPECT_EQ(hosts("HOST: localhost\r\n"), "named:1 ");
    EXPECT_EQ(hosts("Host: a\r\nhost: b\r\n"), "a b ") << "two are one too many";
}

// However it is cut, in between two lines as well.
TEST(request_reader, the_limit_is_of_the_request_line_and_all_fields_together) {
    std::string head = "GET / HTTP/1.1\r\n";
    while (head.size() + 10 <= header_max) {
        head += "X: y\r\n";
    }
    const std::string rest(header_max - 2 - head.size() - 4, 'z');
    for (std::size_t piece = 1; piece <= header_max + 2; ++piece) {
        const auto most = read(head + "X:" + rest + "\r\n\r\nGET", piece);
        EXPECT_EQ(most.what, progress::complete) << piece;
        EXPECT_EQ(most.left, 3U);
        EXPECT_EQ(read(head + "X: " + rest + "\r\n\r\nGET", piece).what, progress::refused)
            << piece;
        EXPECT_EQ(read(head + head, piece).what, progress::refused) << piece;
    }
}

TEST(request_reader, empty_lines_before_a_request_are_ignored) {
    const std::string text = "\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    for (std::size_t piece = 1; piece <= text.size() + 3; ++piece) {
        const auto made = read(text + "GET", piece);
        ASSERT_EQ(made.what, progress::complete) << piece;
        EXPECT_EQ(made.read->method, "GET");
        EXPECT_EQ(made.left, 3U);
        EXPECT_EQ(read("\rGET / HTTP/1.1\r\n\r\n", piece).what, progress::refused) << piece;
    }
    std::string flood;
    while (flood.size() <= header_max) {
        flood += "\r\n";
    }
    EXPECT_EQ(read(flood, 1).what, progress::refused);
}

TEST(request_reader, what_is_too_long_in_any_place) {
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string flood(header_max + body_max, 'x');
    for (const std::string& text : {"GET /" + flood, "GET / HTTP/1.1\r\nX: " + flood,
                                    head + "1;" + flood, head + "0\r\nX: " + flood}) {
        for (const std::size_t piece : {std::size_t{1}, std::size_t{50}}) {
            EXPECT_EQ(read(text, piece).what, progress::refused) << text;
        }
    }
}

}  // namespace
}  // namespace monolock::server::http
