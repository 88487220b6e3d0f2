#pragma once

#include <functional>
#include <string>

#include "config/parsed.hpp"
#include "config/server_config.hpp"
#include "server/secure_stream.hpp"
#include "tls/server_context.hpp"

namespace monolock::server {

// The files that are configured; only where TLS is.
[[nodiscard]] tls::server_files tls_paths(const config::server_config& configuration);

// Reads and checks the files as of now; or says everything that is wrong with them.
[[nodiscard]] config::checked<tls::context> load_tls(const tls::server_files& paths);

// Certificate, key and client CA of a running server, and what they said when they last were valid
// together. Used by the control loop's thread alone.
class tls_files {
public:
    // Throws std::runtime_error, which says everything that is wrong in one line, if the files are
    // not valid.
    explicit tls_files(tls::server_files paths);

    [[nodiscard]] const tls_setting& setting() const noexcept { return setting_; }

    // Reads all files again. If they are valid together they are the setting from now on, of the
    // next generation, and adopt() is called with it. Returns what is in force, for people, or
    // everything that is wrong with the files.
    [[nodiscard]] config::checked<std::string> read_again(
        const std::function<void(const tls_setting&)>& adopt);

private:
    tls::server_files paths_;
    tls_setting setting_;
};

}  // namespace monolock::server
