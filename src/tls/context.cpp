#include "tls/context.hpp"

#include <openssl/ssl.h>

#include <new>
#include <stdexcept>

#include "tls/pem.hpp"

namespace monolock::tls {

namespace {

// Fails where the system's OpenSSL policy forbids what every connection of ours needs.
void require(long done) {
    if (done != 1) {
        throw std::runtime_error{"OpenSSL cannot be set up: " + take_openssl_error()};
    }
}

}  // namespace

context make_context(role side) {
    context made{SSL_CTX_new(side == role::server ? TLS_server_method() : TLS_client_method()),
                 SSL_CTX_free};
    if (!made) {
        throw std::bad_alloc{};
    }
    SSL_CTX* const raw = made.get();
    require(SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION));
    require(SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20"));
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    require(SSL_CTX_set_num_tickets(raw, 0));
    SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    // A peer that sends nothing but key updates must not keep the caller inside one read.
    SSL_CTX_clear_mode(raw, SSL_MODE_AUTO_RETRY);
    // One receive for a record, not one for its header and one for the rest.
    SSL_CTX_set_read_ahead(raw, 1);
    return made;
}

}  // namespace monolock::tls
