#pragma once

#include <cstdint>
#include <memory>

// OpenSSL's types, named here so that no header of ours needs its headers.
struct ssl_ctx_st;

namespace monolock::tls {

enum class role : std::uint8_t { server, client };

// What connections are made from: certificates, trust, and how the protocol is spoken. Never
// changed once the first connection was made from it; a reload makes a new one, and connections
// keep the one they were made from. Null: none.
using context = std::shared_ptr<ssl_ctx_st>;

// A context with the rules that every connection of ours follows and with neither certificates nor
// trust: TLS 1.2 or 1.3; no renegotiation, no compression, no early data; no tickets and no session
// cache, so that nothing resumes and outlives a change of trust; forward-secret AEAD ciphers only;
// buffers given back while idle. Throws std::bad_alloc, and std::runtime_error if the system's
// OpenSSL policy forbids all that.
[[nodiscard]] context make_context(role side);

}  // namespace monolock::tls
