#pragma once

#include <string>

#include "config/parsed.hpp"
#include "tls/channel.hpp"

struct x509_st;

namespace monolock::tls {

// Who the holder of a verified certificate is (docs/security.md, "Identity"): its first URI among
// the subject's alternative names, else its first DNS name there, else its Common Name. Never
// empty; UTF-8 without NUL, byte for byte as it stands in the certificate. A certificate that
// yields none or more than one is refused; the diagnostic says why and repeats nothing of it.
[[nodiscard]] config::parsed<std::string> identity_of(x509_st* leaf);

// The identity of the client at the other end, whose handshake is done; empty if it was not asked
// for a certificate.
[[nodiscard]] std::string identity_of_peer(const channel& connection);

}  // namespace monolock::tls
