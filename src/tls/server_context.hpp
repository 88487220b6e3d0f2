#pragma once

#include <chrono>
#include <string>

#include "tls/channel.hpp"
#include "tls/context.hpp"
#include "tls/pem_files.hpp"

namespace monolock::tls {

// Paths of PEM files.
struct server_files {
    std::string certificate;  // the server's, then the intermediate ones
    std::string key;          // not encrypted
    std::string client_ca;    // empty: clients show no certificate
};

// Reads the files and makes of them what connections are accepted with, all of them; or says all
// that is wrong, and nothing is made. The server's certificate must be valid at `now` and belong to
// the key. With a client CA every client must show a certificate that one of its authorities (and
// nobody else) signed, for client authentication, and that yields an identity; what does not is
// refused within the handshake. Authorities may share a name.
[[nodiscard]] config::checked<context> load_server_context(
    const server_files& files, std::chrono::system_clock::time_point now);

// A few words for people about what the files said: until when the certificate is valid, and
// whether clients must show one.
[[nodiscard]] std::string describe(const context& loaded);

// Whether the client's certificate, accepted by an earlier context, would be accepted by `newest`.
// True if newest asks for none.
[[nodiscard]] bool still_trusts(const context& newest, const channel& connection);

}  // namespace monolock::tls
