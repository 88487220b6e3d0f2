#include "tls/pem.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>
#include <new>
#include <string>

namespace monolock::tls {

namespace {

using config::diagnostic;

struct free_bio {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using memory_bio = std::unique_ptr<BIO, free_bio>;

memory_bio reader_of(std::string_view text) {
    const auto size = static_cast<int>(std::min<std::size_t>(text.size(), INT_MAX));
    memory_bio made{BIO_new_mem_buf(text.data(), size)};
    if (!made) {
        throw std::bad_alloc{};
    }
    return made;
}

struct free_openssl {
    void operator()(void* bytes) const noexcept { OPENSSL_free(bytes); }
};

// One block between a BEGIN and an END line.
struct block {
    std::unique_ptr<char, free_openssl> name;
    std::unique_ptr<unsigned char, free_openssl> bytes;
    long size = 0;
};

enum class block_outcome { read, no_more, broken };

block_outcome read_block(BIO* from, block& into) {
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* bytes = nullptr;
    ERR_clear_error();
    const int done = PEM_read_bio(from, &name, &header, &bytes, &into.size);
    into.name.reset(name);
    into.bytes.reset(bytes);
    OPENSSL_free(header);
    if (done == 1) {
        return block_outcome::read;
    }
    const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return at_end ? block_outcome::no_more : block_outcome::broken;
}

bool is_certificate(std::string_view name) {
    return name == PEM_STRING_X509 || name == PEM_STRING_X509_OLD;
}

certificate decode(const block& from) {
    const unsigned char* at = from.bytes.get();
    certificate made{d2i_X509(nullptr, &at, from.size)};
    ERR_clear_error();
    return at == from.bytes.get() + from.size ? std::move(made) : nullptr;
}

// OpenSSL does not take a line for the start of a block before its end is there, so a file that was
// cut within such a line would pass for a shorter one.
bool ends_within_a_line_of_dashes(std::string_view pem) {
    const std::size_t start = pem.find_last_of('\n') + 1;  // 0 when there is none
    const std::string_view last = pem.substr(start);
    return last.starts_with('-') && !(last.starts_with("-----END ") && last.ends_with("-----"));
}

}  // namespace

void free_certificate::operator()(x509_st* object) const noexcept {
    X509_free(object);
}

void free_private_key::operator()(evp_pkey_st* object) const noexcept {
    EVP_PKEY_free(object);
}

config::parsed<std::vector<certificate>> parse_certificates(std::string_view pem) {
    const diagnostic half_written{"a PEM block is broken or does not end"};
    if (ends_within_a_line_of_dashes(pem)) {
        return half_written;
    }
    std::vector<certificate> found;
    const memory_bio reader = reader_of(pem);
    for (block next;;) {
        switch (read_block(reader.get(), next)) {
            case block_outcome::broken:
                return half_written;
            case block_outcome::no_more:
                if (found.empty()) {
                    return diagnostic{"holds no certificate in PEM form"};
                }
                return found;
            case block_outcome::read:
                break;
        }
        if (is_certificate(next.name.get())) {
            certificate made = decode(next);
            if (!made) {
                return diagnostic{"certificate " + std::to_string(found.size() + 1) +
                                  " cannot be decoded"};
            }
            found.push_back(std::move(made));
        }
    }
}

config::parsed<private_key> parse_private_key(std::string_view pem) {
    bool encrypted = false;
    const auto refuse_to_ask = [](char*, int, int, void* asked) {
        *static_cast<bool*>(asked) = true;
        return -1;
    };
    ERR_clear_error();
    private_key made{
        PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, refuse_to_ask, &encrypted)};
    ERR_clear_error();
    if (made) {
        return made;
    }
    return diagnostic{encrypted ? "the private key is encrypted; it must not be"
                                : "holds no readable private key in PEM form"};
}

std::string take_openssl_error() {
    const unsigned long error = ERR_peek_last_error();
    ERR_clear_error();
    const char* const words = error == 0 ? nullptr : ERR_reason_error_string(error);
    return words == nullptr ? "unknown error" : words;
}

}  // namespace monolock::tls
