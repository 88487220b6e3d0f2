#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/parsed.hpp"
#include "tls/context.hpp"
#include "tls/pem.hpp"

namespace monolock::tls {

// A certificate chain and its key, where they are.
struct own_files {
    std::string certificate;  // the leaf, then the intermediate ones
    std::string key;          // not encrypted
};

// The text of a file that is parsed and then wiped: it may hold a key. What is wrong goes to the
// list as "FILE: why". Blocks on the file.
class pem_text {
public:
    // None.
    pem_text() noexcept = default;
    pem_text(const std::string& path, config::diagnostics& errors);
    pem_text(const pem_text&) = delete;
    pem_text& operator=(const pem_text&) = delete;
    ~pem_text();

    [[nodiscard]] explicit operator bool() const noexcept { return text_.has_value(); }
    [[nodiscard]] std::string_view view() const noexcept { return *text_; }

private:
    std::optional<std::string> text_;
};

// Parses the text of a file, if it could be read; what is wrong goes to the list.
template <class Value>
[[nodiscard]] std::optional<Value> parse_pem(const std::string& path, const pem_text& text,
                                             config::parsed<Value> (*parse)(std::string_view pem),
                                             config::diagnostics& errors) {
    if (!text) {
        return std::nullopt;
    }
    auto value = parse(text.view());
    if (!value) {
        errors.push_back({path + ": " + value.error().text});
        return std::nullopt;
    }
    return *std::move(value);
}

// Reads and parses one file; what is wrong goes to the list.
template <class Value>
[[nodiscard]] std::optional<Value> load_pem(const std::string& path,
                                            config::parsed<Value> (*parse)(std::string_view pem),
                                            config::diagnostics& errors) {
    return parse_pem(path, pem_text{path, errors}, parse, errors);
}

// Makes the chain and the key what connections of the context show, if the two belong together and
// OpenSSL's security level lets them pass. `files` says where they came from.
void use_own(const context& in, const own_files& files, const std::vector<certificate>& chain,
             const private_key& key, config::diagnostics& errors);

}  // namespace monolock::tls
