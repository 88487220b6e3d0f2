// The floor under TLS: floor_server's loop with OpenSSL in between and nothing else, in the fewest
// calls. Of a connection it keeps OpenSSL's object. What it costs is the kernel's and OpenSSL's; so
// it talks to OpenSSL by itself and not through src/tls, whose cost is the server's.
//
//     tls_floor_server CERTIFICATE KEY [CLIENT_CA]     files in PEM form
//
// With a client CA it asks for the client's certificate and verifies it. Everything that changes
// what OpenSSL does for a connection is set as the server sets it: what a client negotiates, no
// tickets, buffers given back while idle, one receive for a record.
//
// It does not answer a close_notify, which would be one more record for a peer that is gone.

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "floor/constant_answer.hpp"
#include "floor/loop.hpp"

namespace {

namespace floor = monolock::bench::floor;

void require(bool done, const char* what) {
    if (!done) {
        std::fprintf(stderr, "tls_floor_server: %s\n", what);
        ERR_print_errors_fp(stderr);
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
    }
}

struct files {
    const char* certificate = nullptr;
    const char* key = nullptr;
    const char* client_ca = nullptr;  // null: clients show no certificate
};

SSL_CTX* make_context(const files& from) {
    SSL_CTX* const made = SSL_CTX_new(TLS_server_method());
    require(made != nullptr, "no context");
    SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
    SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(made, 0);
    // Without the second mode OpenSSL looks for the authority of its own certificate, and verifies
    // it, for each handshake anew.
    SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(made, 1);
    require(SSL_CTX_use_certificate_chain_file(made, from.certificate) == 1, from.certificate);
    require(SSL_CTX_use_PrivateKey_file(made, from.key, SSL_FILETYPE_PEM) == 1, from.key);
    if (from.client_ca != nullptr) {
        require(SSL_CTX_load_verify_file(made, from.client_ca) == 1, from.client_ca);
        SSL_CTX_set_client_CA_list(made, SSL_load_client_CA_file(from.client_ca));
        SSL_CTX_set_verify(made, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    return made;
}

// floor_server's answerer, through OpenSSL.
class tls_answerer {
public:
    explicit tls_answerer(SSL_CTX* context) : context_{context} {}

    void opened(int connection) {
        const auto index = static_cast<std::size_t>(connection);
        if (index >= objects_.size()) {
            objects_.resize(index + 1);
        }
        objects_[index] = SSL_new(context_);
        require(objects_[index] != nullptr && SSL_set_fd(objects_[index], connection) == 1,
                "no connection");
        SSL_set_accept_state(objects_[index]);
    }

    // Each receive takes all that the socket holds, up to a record, and what comes later raises an
    // edge. So nothing is asked for beyond what OpenSSL holds already.
    void serve(int connection) {
        SSL* const object = objects_[static_cast<std::size_t>(connection)];
        if (SSL_is_init_finished(object) != 1) {
            const int returned = SSL_do_handshake(object);
            if (returned != 1) {
                end_unless_it_waits(connection, returned);
                return;
            }
            if (SSL_has_pending(object) != 1) {
                return;
            }
        }
        do {
            const int received = SSL_read(object, input_.data(), static_cast<int>(input_.size()));
            if (received <= 0) {
                end_unless_it_waits(connection, received);
                return;
            }
            if (!answer(object, std::span{input_}.first(static_cast<std::size_t>(received)))) {
                end(connection);
                return;
            }
        } while (SSL_has_pending(object) == 1);
    }

private:
    [[nodiscard]] bool answer(SSL* object, std::span<const std::byte> input) {
        const auto frames = answer_.to(input);
        return SSL_write(object, frames.data(), static_cast<int>(frames.size())) > 0;
    }

    void end_unless_it_waits(int connection, int returned) {
        SSL* const object = objects_[static_cast<std::size_t>(connection)];
        if (SSL_get_error(object, returned) != SSL_ERROR_WANT_READ) {
            end(connection);
        }
    }

    void end(int connection) {
        SSL_free(std::exchange(objects_[static_cast<std::size_t>(connection)], nullptr));
        ::close(connection);
        ERR_clear_error();
    }

    SSL_CTX* context_;
    std::vector<SSL*> objects_;  // by descriptor
    std::array<std::byte, floor::input_bytes_max> input_{};
    floor::constant_answer answer_;
};

}  // namespace

int main(int argc, char** argv) {
    require(argc == 3 || argc == 4, "usage: tls_floor_server CERTIFICATE KEY [CLIENT_CA]");
    floor::raise_descriptor_limit();
    std::signal(SIGPIPE, SIG_IGN);
    static tls_answerer answerer{make_context(
        {.certificate = argv[1], .key = argv[2], .client_ca = argc == 4 ? argv[3] : nullptr})};
    floor::run(answerer);
}
