#include "server/tls_files.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace monolock::server {

config::checked<tls::context> load_tls(const tls::server_files& paths) {
    auto loaded = tls::load_server_context(paths, std::chrono::system_clock::now());
    if (const auto* const errors = std::get_if<tls::file_errors>(&loaded)) {
        config::diagnostics wrong;
        for (const std::string& each : *errors) {
            wrong.push_back({each});
        }
        return wrong;
    }
    return std::get<tls::context>(std::move(loaded));
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
