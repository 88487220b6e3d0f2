#include "server/tls_files.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace monolock::server {

tls::server_files tls_paths(const config::server_config& configuration) {
    return {.certificate = configuration.tls_cert,
            .key = configuration.tls_key,
            .client_ca = configuration.tls_client_ca};
}

config::checked<tls::context> load_tls(const tls::server_files& paths) {
    return tls::load_server_context(paths, std::chrono::system_clock::now());
}

tls_files::tls_files(tls::server_files paths) : paths_{std::move(paths)} {
    auto loaded = load_tls(paths_);
    if (!loaded) {
        throw std::runtime_error{config::joined(loaded.error())};
    }
    setting_ = {.context = *std::move(loaded), .generation = 1};
}

config::checked<std::string> tls_files::read_again(
    const std::function<void(const tls_setting&)>& adopt) {
    auto loaded = load_tls(paths_);
    if (!loaded) {
        return loaded.error();
    }
    setting_ = {.context = *std::move(loaded), .generation = setting_.generation + 1};
    adopt(setting_);
    return tls::describe(setting_.context);
}

}  // namespace monolock::server
