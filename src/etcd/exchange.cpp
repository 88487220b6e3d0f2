#include "etcd/exchange.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "etcd/messages/json_reader.hpp"

namespace monolock::etcd {

namespace {

using std::chrono::milliseconds;

// More than are ever in use at once; those that are idle longest go first.
constexpr long kept_connections_max = 8;

[[noreturn]] void throw_refused(const char* what) {
    throw std::runtime_error{std::string{"libcurl: "} + what};
}

// A program that is started meanwhile must not keep a connection open.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* where) {
    return ::socket(where->family, where->socktype | SOCK_CLOEXEC, where->protocol);
}

}  // namespace

transfers::transfers() {
    // Once for the process and for good; libcurl since 7.84 does this under a lock of its own.
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (started != CURLE_OK) {
        throw_refused(curl_easy_strerror(started));
    }
    multi_.reset(curl_multi_init());
    // Each exchange on a connection of its own: none is ever queued behind another. There is no
    // limit of connections either, which would queue them too.
    if (multi_ == nullptr ||
        curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING}) != CURLM_OK ||
        curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, kept_connections_max) != CURLM_OK) {
        throw_refused("no memory");
    }
}

exchange::exchange(transfers& among, const gateway_options& options, std::size_t endpoint,
                   http_call what, std::string token, stream_taker take)
    : among_{&among},
      endpoint_{endpoint},
      token_{std::move(token)},
      body_{std::move(what.body)},
      take_{std::move(take)},
      error_{new char[CURL_ERROR_SIZE]{}},
      easy_{curl_easy_init()} {
    if (easy_ == nullptr) {
        throw_refused("no memory");
    }
    set_request(options, what.path);
    set_connection(options);
    set_tls(options);
    if (take_) {
        set_stream();
    }
    // Nothing is sent yet: that is for curl_multi_perform.
    if (curl_multi_add_handle(among_->get(), easy_.get()) != CURLM_OK) {
        throw_refused("no memory");
    }
}

exchange::~exchange() {
    curl_multi_remove_handle(among_->get(), easy_.get());
}

reply exchange::answer() const noexcept {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return {.status = status, .body = kept_};
}

bool exchange::was_connected() const noexcept {
    curl_off_t when = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &when);
    return when != 0;
}

std::string exchange::why(CURLcode result) const {
    if (result == CURLE_WRITE_ERROR) {
        return "an answer that is too long";
    }
    return one_line(error_[0] != '\0' ? error_.get() : curl_easy_strerror(result));
}

template <class Value>
void exchange::set(CURLoption option, Value value) {
    if (const CURLcode result = curl_easy_setopt(easy_.get(), option, value); result != CURLE_OK) {
        throw_refused(curl_easy_strerror(result));
    }
}

void exchange::add_header(const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) {
        throw_refused("no memory");
    }
    static_cast<void>(headers_.release());
    headers_.reset(longer);
    set(CURLOPT_HTTPHEADER, longer);
}

void exchange::set_request(const gateway_options& options, const std::string& path) {
    const std::string url = config::to_string(options.endpoints[endpoint_]) + path;
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_.size()));
    set(CURLOPT_POSTFIELDS, body_.c_str());
    add_header("Content-Type: application/json");
    add_header("Expect:");  // the body goes out with the head, and waits for no permission
    if (!token_.empty()) {
        add_header("Authorization: " + token_);
    }
    set(CURLOPT_USERAGENT, "monolock/" MONOLOCK_VERSION);
    set(CURLOPT_WRITEFUNCTION, &exchange::receive);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_ERRORBUFFER, error_.get());
}

void exchange::set_connection(const gateway_options& options) {
    const bool secure = options.endpoints[endpoint_].scheme == config::endpoint_scheme::https;
    set(CURLOPT_PROTOCOLS_STR, secure ? "https" : "http");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    // HTTP/2 would put several exchanges on one connection, the watch among them.
    set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    // Neither the environment nor a list of exceptions in it has a say.
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
    set(CURLOPT_NOSIGNAL, 1L);
    // Names are resolved by a thread of libcurl's, since the system's resolver knows no deadline.
    // Without QUICK_EXIT, to give up would wait for that thread.
    set(CURLOPT_QUICK_EXIT, 1L);
    // A connection is rare, and a member may have moved.
    set(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    // The gateway ends what takes too long. This only has each address of a name get its share.
    const auto limit = std::chrono::ceil<milliseconds>(options.patience).count();
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<milliseconds::rep>(limit, 1)));
    set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS,
        static_cast<long>(std::clamp<milliseconds::rep>(limit / 4, 1, 200)));
}

void exchange::set_tls(const gateway_options& options) {
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
    if (!options.ca_file.empty()) {
        set(CURLOPT_CAINFO, options.ca_file.c_str());
        // Those of the system, which libcurl was built with, would be trusted beside it.
        set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (!options.certificate_file.empty()) {
        set(CURLOPT_SSLCERT, options.certificate_file.c_str());
        set(CURLOPT_SSLKEY, options.key_file.c_str());
        set(CURLOPT_KEYPASSWD, "");  // nobody is asked for it on the terminal
    }
    // Files that were replaced count from the next connection on.
    set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
    set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
}

void exchange::set_stream() {
    // A member of etcd that lost its leader would otherwise keep the stream open and say nothing.
    add_header("Grpc-Metadata-hasleader: true");
    // A connection of its own from the beginning to the end; those that are kept are for calls.
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
}

// Of libcurl's type for it; what is less than the size ends the exchange.
std::size_t exchange::receive(const char* bytes, std::size_t, std::size_t size, void* self) {
    auto& mine = *static_cast<exchange*>(self);
    const std::string_view piece{bytes, size};
    if (mine.take_ && mine.answer().status == status_ok) {
        return mine.take_(piece) ? size : 0;
    }
    if (size > answer_bytes_max - mine.kept_.size()) {
        return 0;
    }
    mine.kept_ += piece;
    return size;
}

}  // namespace monolock::etcd
