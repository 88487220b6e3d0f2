#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "tls/channel.hpp"
#include "tls/context.hpp"
#include "tls/pem_files.hpp"
#include "tls/server_name.hpp"

namespace monolock::tls {

// The files of a client, all PEM.
struct client_files {
    std::string ca{};           // empty: the system's certificate store
    std::string certificate{};  // the leaf, then intermediates; empty: none is shown to the server
    std::string key{};          // of the leaf; empty if there is no certificate
};

// Reads the files and makes a context from them that trusts what the CA file holds (a root, an
// intermediate, or the one server's own certificate) and demands a certificate for TLS servers; or
// nothing but all that is wrong. Whether the client's certificate is valid now is left to the
// server and its clock. Blocks on the files.
[[nodiscard]] std::variant<context, file_errors> load_client_context(const client_files& files);

// To be called before the handshake: the certificate must be for `name`. Only its subject
// alternative names count, never the Common Name; a wildcard stands for one whole label, the
// leftmost. A DNS name is also sent to the server (SNI). Throws std::bad_alloc.
void expect_server(channel& over, const server_name& name);

// What the end of a client's channel was about, once that ended with alerted or failed.
enum class client_end : std::uint8_t {
    server_not_trusted,   // we refused the server's certificate
    certificate_refused,  // the server refused ours, or that we have none
    no_tls,               // the peer's first bytes were no TLS
    other,
};

[[nodiscard]] client_end client_end_of(const channel& over, bool shows_certificate);

// The same in words, and one line: what was wrong, and what was expected.
[[nodiscard]] std::string explain_client_end(const channel& over, const server_name& expected,
                                             const std::string& certificate_file);

// Asks OpenSSL to leave its memory as it is when the process exits. By default it frees it from an
// exit handler, which may run before a static client or lock ends, and while their background
// thread is still using it. Has no effect if the program has used OpenSSL before.
void keep_openssl_until_exit() noexcept;

}  // namespace monolock::tls
