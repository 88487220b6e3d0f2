#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

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

// Makes contexts from the files of one client. They trust what the CA file holds (a root, an
// intermediate, or the one server's own certificate) and demand a certificate for TLS servers.
// Whether the client's certificate is valid now is left to the server and its clock. All calls may
// be made from any thread.
class client_context_source {
public:
    explicit client_context_source(client_files files) : files_{std::move(files)} {}

    // What the files hold now, or nothing but all that is wrong with them. Reads them at each call,
    // and blocks on that; when they still hold the same, the context is the same as before. The
    // system's store is looked at anew once it is older than system_store_age.
    [[nodiscard]] config::checked<context> current();

    static constexpr std::chrono::seconds system_store_age{10};

private:
    using digest = std::array<unsigned char, 32>;

    [[nodiscard]] context made_before_of(const digest& texts);

    client_files files_;
    std::mutex mutex_;
    // Guarded by it:
    context last_;
    digest made_of_{};
    std::chrono::steady_clock::time_point made_at_;
};

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
