#include "tls/pem_files.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstddef>
#include <memory>
#include <new>

#include "posix/read_file.hpp"

namespace monolock::tls {

namespace {

// Far above what a chain, or all authorities of an operating system, take.
constexpr std::size_t file_bytes_max = std::size_t{1} << 20U;

struct free_stack {
    void operator()(STACK_OF(X509) * stack) const noexcept { sk_X509_free(stack); }
};

}  // namespace

pem_text::pem_text(const std::string& path, config::diagnostics& errors) {
    auto text = posix::read_file(path, file_bytes_max);
    if (text) {
        text_ = *std::move(text);
    } else {
        errors.push_back({path + ": " + text.error().text});
    }
}

pem_text::~pem_text() {
    if (text_) {
        OPENSSL_cleanse(text_->data(), text_->size());
    }
}

void use_own(const context& in, const own_files& files, const std::vector<certificate>& chain,
             const private_key& key, config::diagnostics& errors) {
    if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
        errors.push_back(
            {files.key + ": the key does not belong to the certificate in " + files.certificate});
        ERR_clear_error();
        return;
    }
    const std::unique_ptr<STACK_OF(X509), free_stack> rest{sk_X509_new_null()};
    if (!rest) {
        throw std::bad_alloc{};
    }
    for (std::size_t index = 1; index < chain.size(); ++index) {
        sk_X509_push(rest.get(), chain[index].get());
    }
    // Refuses what OpenSSL's security level does: a key that is too short, a weak signature.
    if (SSL_CTX_use_cert_and_key(in.get(), chain.front().get(), key.get(), rest.get(), 1) != 1) {
        errors.push_back({files.certificate + ": " + take_openssl_error()});
    }
}

}  // namespace monolock::tls
