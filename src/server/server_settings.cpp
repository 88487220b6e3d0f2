#include "server/server_settings.hpp"

#include <algorithm>
#include <boost/asio/ip/host_name.hpp>
#include <chrono>
#include <thread>
#include <variant>

namespace monolock::server {

unsigned shard_count(const config::server_config& configuration) {
    return configuration.threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
}

core::nanoseconds closing_time_max(const config::server_config& configuration) {
    return configuration.io_timeout + std::chrono::seconds{1};
}

core::nanoseconds etcd_call_time_max(const config::server_config& configuration) {
    constexpr core::nanoseconds least = std::chrono::milliseconds{125};  // of the shortest TTL
    return std::min(core::nanoseconds{configuration.etcd_ttl} / 8,
                    std::max(configuration.io_timeout / 4, least));
}

core::nanoseconds resigning_time_max(const config::server_config& configuration) {
    return configuration.one_of_several()
               ? 4 * etcd_call_time_max(configuration) + std::chrono::seconds{1}
               : core::nanoseconds{0};
}

core::nanoseconds shutdown_time_max(const config::server_config& configuration) {
    return configuration.shutdown_delay + 2 * configuration.io_timeout +
           resigning_time_max(configuration) + std::chrono::seconds{10};
}

std::uint64_t descriptors_later(const config::server_config& configuration) {
    constexpr std::uint64_t for_calls = 16;
    constexpr std::uint64_t addresses = 4;  // of a host name, as many as one has
    return configuration.one_of_several() ? for_calls + addresses * (1 + shard_count(configuration))
                                          : 0;
}

std::size_t http_connections_max(const descriptor_budget& budget) {
    return std::max<std::size_t>(2, budget.reserve() / 4);
}

std::string name_among_servers(const config::server_config& configuration) {
    if (!configuration.advertise.empty()) {
        return configuration.advertise;
    }
    const config::address where = configuration.listen.value_or(config::listen_default());
    const auto* const tcp = std::get_if<config::tcp_address>(&where);
    return boost::asio::ip::host_name() + ":" +
           (tcp != nullptr ? std::to_string(tcp->port) : to_string(where));
}

coordinator::settings coordination_settings(const config::server_config& configuration) {
    return {.role = {.name = name_among_servers(configuration),
                     .ttl = configuration.etcd_ttl,
                     .grant_delay = {.fixed = configuration.grant_delay,
                                     .covered_max = configuration.grant_delay_max}},
            .etcd = {.endpoints = configuration.etcd_endpoints,
                     .prefix = configuration.etcd_prefix,
                     .patience = etcd_call_time_max(configuration),
                     .watch_silence_max = core::nanoseconds{configuration.etcd_ttl},
                     .ca_file = configuration.etcd_ca,
                     .certificate_file = configuration.etcd_cert,
                     .key_file = configuration.etcd_key,
                     .user_file = configuration.etcd_user_file}};
}

}  // namespace monolock::server
