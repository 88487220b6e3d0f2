#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "config/parsed.hpp"

struct evp_pkey_st;
struct x509_st;

namespace monolock::tls {

struct free_certificate {
    void operator()(x509_st* object) const noexcept;
};
using certificate = std::unique_ptr<x509_st, free_certificate>;

struct free_private_key {
    void operator()(evp_pkey_st* object) const noexcept;
};
using private_key = std::unique_ptr<evp_pkey_st, free_private_key>;

// All certificates of a PEM text, at least one, in order. Other blocks and text between the blocks
// are passed over, as is the custom; a block that does not end or cannot be read is refused, so
// that a file that is still being written is not taken for a shorter one.
[[nodiscard]] config::parsed<std::vector<certificate>> parse_certificates(std::string_view pem);

// The first private key of a PEM text. An encrypted one is refused; nobody is ever prompted.
[[nodiscard]] config::parsed<private_key> parse_private_key(std::string_view pem);

// The newest entry of this thread's OpenSSL error queue in words, and the queue is emptied.
[[nodiscard]] std::string take_openssl_error();

}  // namespace monolock::tls
