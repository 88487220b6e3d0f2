#include "tls/channel.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <string_view>

#include "posix/peers_word.hpp"

namespace monolock::tls {

// The socket as OpenSSL sees it. Its own socket BIO would raise SIGPIPE, and keeps errno no longer
// than the next call.
struct socket_bio {
    static channel::io_state& state_of(BIO* bio) noexcept {
        return *static_cast<channel::io_state*>(BIO_get_data(bio));
    }

    static int read(BIO* bio, char* into, int size) noexcept {
        channel::io_state& io = state_of(bio);
        BIO_clear_retry_flags(bio);
        if (io.allowed == 0) {
            BIO_set_retry_read(bio);
            return -1;
        }
        const std::size_t most = std::min(static_cast<std::size_t>(size), io.allowed);
        ssize_t count = 0;
        do {
            count = ::recv(io.descriptor, into, most, MSG_DONTWAIT);
        } while (count < 0 && errno == EINTR);
        io.last = channel::socket_read::full;
        if (count > 0) {
            io.allowed -= static_cast<std::size_t>(count);
            if (static_cast<std::size_t>(count) < most) {
                io.last = channel::socket_read::less;
            }
        } else if (count < 0 && errno == EAGAIN) {
            io.last = channel::socket_read::empty;
            BIO_set_retry_read(bio);
        } else if (count < 0) {
            io.error = errno;
        }
        return static_cast<int>(count);
    }

    static int write(BIO* bio, const char* from, int size) noexcept {
        channel::io_state& io = state_of(bio);
        BIO_clear_retry_flags(bio);
        ssize_t count = 0;
        do {
            count = ::send(io.descriptor, from, static_cast<std::size_t>(size),
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (count < 0 && errno == EINTR);
        if (count < 0 && errno == EAGAIN) {
            BIO_set_retry_write(bio);
        } else if (count < 0) {
            io.error = errno;
        }
        return static_cast<int>(count);
    }

    // Nothing is buffered here, so a flush has always happened; nothing else is supported.
    static long control(BIO*, int command, long, void*) noexcept {
        return command == BIO_CTRL_FLUSH ? 1 : 0;
    }

    static BIO_METHOD* make_method() noexcept {
        BIO_METHOD* const made =
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream socket");
        if (made != nullptr) {
            BIO_meth_set_read(made, read);
            BIO_meth_set_write(made, write);
            BIO_meth_set_ctrl(made, control);
        }
        return made;
    }

    static BIO* make(channel::io_state& io) {
        static BIO_METHOD* const method = make_method();  // lives as long as the process
        BIO* const made = method == nullptr ? nullptr : BIO_new(method);
        if (made == nullptr) {
            throw std::bad_alloc{};
        }
        BIO_set_data(made, &io);
        BIO_set_init(made, 1);
        return made;
    }
};

namespace {

// What one receive takes from the socket: enough to complete any record, and no more, for OpenSSL
// goes on reading as long as what it gets brings nothing for the caller and ends within a record.
// Key updates are 26 bytes each, and each costs a derivation of keys.
constexpr std::size_t receive_bytes_max = SSL3_RT_HEADER_LENGTH + SSL3_RT_MAX_ENCRYPTED_LENGTH;

// OpenSSL reports a received fatal alert as an error of its own with this offset.
std::optional<std::uint8_t> alert_of(unsigned long error) noexcept {
    const int reason = ERR_GET_REASON(error);
    if (ERR_GET_LIB(error) != ERR_LIB_SSL || reason < SSL_AD_REASON_OFFSET ||
        reason > SSL_AD_REASON_OFFSET + 255) {
        return std::nullopt;
    }
    return static_cast<std::uint8_t>(reason - SSL_AD_REASON_OFFSET);
}

}  // namespace

void channel::free_ssl::operator()(ssl_st* object) const noexcept {
    SSL_free(object);
}

channel::channel(const context& from, role side, int descriptor) : ssl_{SSL_new(from.get())} {
    ERR_clear_error();
    if (!ssl_) {
        throw std::bad_alloc{};
    }
    io_.descriptor = descriptor;
    BIO* const bio = socket_bio::make(io_);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), this);
    if (side == role::server) {
        SSL_set_accept_state(ssl_.get());
    } else {
        SSL_set_connect_state(ssl_.get());
    }
}

channel::~channel() = default;

status channel::handshake() noexcept {
    ERR_clear_error();
    io_.last = socket_read::none;
    io_.allowed = std::numeric_limits<std::size_t>::max();
    const int returned = SSL_do_handshake(ssl_.get());
    return returned == 1 ? status::ok : verdict(returned);
}

channel::result channel::receive(std::span<std::byte> into) noexcept {
    ERR_clear_error();
    io_.last = socket_read::none;
    io_.allowed = receive_bytes_max;
    std::size_t count = 0;
    const int returned = SSL_read_ex(ssl_.get(), into.data(), into.size(), &count);
    if (returned == 1) {
        return {.outcome = status::ok, .count = count};
    }
    return {.outcome = verdict(returned)};
}

// With a part of a record inside, one more receive finds the socket empty: that ends the asking.
bool channel::holds_input() const noexcept {
    return io_.last != socket_read::empty && SSL_has_pending(ssl_.get()) == 1;
}

channel::result channel::send(std::span<const std::byte> bytes) noexcept {
    ERR_clear_error();
    std::size_t count = 0;
    const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
    if (returned == 1) {
        send_pending_ = false;
        return {.outcome = status::ok, .count = count};
    }
    send_pending_ = true;
    return {.outcome = verdict(returned)};
}

void channel::send_close_notify() noexcept {
    if (broken_ || send_pending_ || SSL_is_init_finished(ssl_.get()) != 1) {
        return;
    }
    ERR_clear_error();
    static_cast<void>(SSL_shutdown(ssl_.get()));  // what does not fit now is not sent
    ERR_clear_error();
}

std::string channel::failure() const {
    const auto error = static_cast<unsigned long>(openssl_error_);
    const char* const words = error == 0 ? nullptr : ERR_reason_error_string(error);
    std::string text = words == nullptr ? "TLS failed" : words;
    if (alert_) {  // "sslv3 alert certificate expired", whatever the version
        constexpr std::string_view before = "alert ";
        const std::size_t at = text.find(before);
        return at == std::string::npos ? text : text.substr(at + before.size());
    }
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        text += ": ";
        text += X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()));
    }
    if (!explanation_.empty()) {
        text += ": " + explanation_;
    }
    return text;
}

channel& channel::of(const ssl_st* object) noexcept {
    return *static_cast<channel*>(SSL_get_app_data(object));
}

status channel::verdict(int returned) noexcept {
    switch (SSL_get_error(ssl_.get(), returned)) {
        case SSL_ERROR_WANT_READ:
            return status::wants_read;
        case SSL_ERROR_WANT_WRITE:
            return status::wants_write;
        case SSL_ERROR_ZERO_RETURN:
            return status::peer_closed;
        case SSL_ERROR_SYSCALL:
            broken_ = true;
            return io_.error == 0 || posix::is_peers_word(io_.error) ? status::peer_closed
                                                                     : status::silence;
        default:
            broken_ = true;
            openssl_error_ = ERR_peek_last_error();
            ERR_clear_error();
            alert_ = alert_of(static_cast<unsigned long>(openssl_error_));
            return alert_ ? status::alerted : status::failed;
    }
}

}  // namespace monolock::tls
