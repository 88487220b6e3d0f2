// PEM files: what is read of one reads the same when it is written anew; and of a file that is cut
// off anywhere nothing is left out unseen, whoever may be writing it.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/choices.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "tls/pem.hpp"

namespace {

namespace fuzz = monolock::fuzz;
namespace tls = monolock::tls;
using certificates = std::vector<tls::certificate>;
using fuzz::require;

struct free_bio {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};

std::string written(const certificates& all) {
    const std::unique_ptr<BIO, free_bio> out{BIO_new(BIO_s_mem())};
    for (const tls::certificate& each : all) {
        require(PEM_write_bio_X509(out.get(), each.get()) == 1);
    }
    char* text = nullptr;
    const long size = BIO_get_mem_data(out.get(), &text);
    return {text, static_cast<std::size_t>(size)};
}

// Whether the first ones of `all` are these.
bool are_first(const certificates& some, const certificates& all) {
    return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin(),
                                                   [](const auto& one, const auto& other) {
                                                       return X509_cmp(one.get(), other.get()) == 0;
                                                   });
}

// Whether the text ends within a line that could become the first of a block.
bool may_be_about_to_begin(std::string_view text) {
    constexpr std::string_view begin = "-----BEGIN ";
    const std::size_t newline = text.rfind('\n');
    const std::string_view last =
        newline == std::string_view::npos ? text : text.substr(newline + 1);
    return !last.empty() && last.substr(0, begin.size()) == begin.substr(0, last.size());
}

std::size_t count_of(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos;
         at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

void check_certificates(std::string_view text, std::size_t cut) {
    const auto all = tls::parse_certificates(text);
    require(ERR_peek_error() == 0);
    if (!all) {
        require(fuzz::is_one_line(all.error().text));
        return;
    }
    require(!all->empty() && all->size() <= count_of(text, "-----BEGIN "));
    const auto again = tls::parse_certificates(written(*all));
    require(again && again->size() == all->size() && are_first(*again, *all));

    // Where it pleases, and within the line that begins the last block.
    for (const std::size_t end : {cut, text.rfind("-----BEGIN ") + 1 + cut % 10}) {
        const std::string_view part = text.substr(0, end);
        const auto some = tls::parse_certificates(part);
        if (some) {
            require(are_first(*some, *all));
            require(some->size() == all->size() || !may_be_about_to_begin(part));
        }
    }
}

void check_key(std::string_view text) {
    const auto key = tls::parse_private_key(text);
    require(key ? *key != nullptr : fuzz::is_one_line(key.error().text));
    require(!key || text.find("PRIVATE KEY-----") != std::string_view::npos);
    require(ERR_peek_error() == 0);
}

}  // namespace

// The first byte says certificates or a key, the next two where the file is cut off.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ERR_clear_error();  // what this target's own calls left there
    fuzz::choices input{data, size};
    const bool is_key = input.next() % 4 == 0;
    const auto cut = static_cast<std::size_t>(input.number(2));
    const std::string_view text = input.rest();
    if (is_key) {
        check_key(text);
    } else {
        check_certificates(text, std::min(cut, text.size()));
    }
    return 0;
}
