#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "etcd/gateway.hpp"
#include "etcd/messages/answers.hpp"
#include "etcd/messages/calls.hpp"

namespace monolock::etcd {

// libcurl's set of transfers, with the connections that it keeps between them. Whatever uses one
// must be gone before it.
class transfers {
public:
    transfers();  // throws std::runtime_error
    [[nodiscard]] CURLM* get() const noexcept { return multi_.get(); }

private:
    struct cleanup {
        void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
    };
    std::unique_ptr<CURLM, cleanup> multi_;
};

// Takes what comes with status 200, as it comes. False ends the exchange.
using stream_taker = std::function<bool(std::string_view)>;

// One HTTP request to an endpoint, and its answer. Is among the transfers as long as it lives; when
// it dies unfinished, its connection does too. Throws std::runtime_error if libcurl wants memory.
class exchange {
public:
    // Without a taker the answer is kept, at most answer_bytes_max bytes of it; with one, only that
    // of another status is. An empty token is none.
    exchange(transfers& among, const gateway_options& options, std::size_t endpoint, http_call what,
             std::string token, stream_taker take = {});
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange();

    [[nodiscard]] bool is(const CURL* handle) const noexcept { return handle == easy_.get(); }
    [[nodiscard]] std::size_t endpoint() const noexcept { return endpoint_; }
    [[nodiscard]] const std::string& token() const noexcept { return token_; }

    // What came so far. Lives as long as the exchange.
    [[nodiscard]] reply answer() const noexcept;
    // Whether the request went out, at least in part.
    [[nodiscard]] bool was_connected() const noexcept;
    // Why it failed, in one line.
    [[nodiscard]] std::string why(CURLcode result) const;

private:
    void set_request(const gateway_options& options, const std::string& path);
    void set_connection(const gateway_options& options);
    void set_tls(const gateway_options& options);
    void set_stream();
    void add_header(const std::string& line);
    template <class Value>
    void set(CURLoption option, Value value);
    static std::size_t receive(const char* bytes, std::size_t one, std::size_t size, void* self);

    struct cleanup {
        void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
        void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
    };

    transfers* among_;
    std::size_t endpoint_;
    std::string token_;
    std::string body_;  // of the request
    std::unique_ptr<curl_slist, cleanup> headers_;
    std::string kept_;  // of the answer
    stream_taker take_;
    std::unique_ptr<char[]> error_;
    std::unique_ptr<CURL, cleanup> easy_;
};

}  // namespace monolock::etcd
