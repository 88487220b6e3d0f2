#include "server/server.hpp"

#include <sys/random.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "config/duration.hpp"
#include "server/access_file.hpp"
#include "server/admin/admin_api.hpp"
#include "server/audit_log.hpp"
#include "server/health.hpp"
#include "server/heap.hpp"
#include "server/http_port.hpp"
#include "server/inherited_sockets.hpp"
#include "server/listener.hpp"
#include "server/metrics.hpp"
#include "server/ops_endpoints.hpp"
#include "server/reload.hpp"
#include "server/service_manager.hpp"
#include "server/shard.hpp"
#include "server/tls_files.hpp"
#include "server/watchdog.hpp"
#include "telemetry/escape.hpp"

namespace monolock::server {

namespace {

using telemetry::log_level;

// Nothing if no file is configured.
std::optional<access_file> open_access_file(const config::server_config& configuration) {
    if (configuration.acl_file.empty()) {
        return std::nullopt;
    }
    return access_file{configuration.acl_file};
}

// For the audit log, when a second signal ends the process on the spot.
constexpr std::chrono::milliseconds last_words_time{100};

core::name_hasher make_hasher() {
    core::name_hasher::key secret{};
    if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
        throw std::runtime_error{"cannot get random bytes from the system"};
    }
    return core::name_hasher{secret};
}

// Nothing if connections are plain.
std::optional<tls_files> open_tls_files(const config::server_config& configuration) {
    if (!configuration.tls()) {
        return std::nullopt;
    }
    return tls_files{tls_paths(configuration)};
}

unsigned shard_count(const config::server_config& configuration) {
    return configuration.threads.value_or(std::max(1U, std::thread::hardware_concurrency()));
}

// What the shutdown may take: the delay, then what close_sessions() and the audit log's end bear,
// and some time for a busy machine.
core::nanoseconds shutdown_time_max(const config::server_config& configuration) {
    return configuration.shutdown_delay + 2 * configuration.io_timeout + std::chrono::seconds{10};
}

// The steps that a shard takes within a turn; more than this it gets only if it has stalled.
constexpr std::chrono::seconds begin_drain_time_max{1};
constexpr std::chrono::seconds join_time_max{1};

// Whoever may administer is in the socket's group.
constexpr mode_t admin_socket_mode = 0660;

// A quarter of the reserve for each HTTP listener: so much is left for the files that a reload
// opens.
std::size_t http_connections_max(const descriptor_budget& budget) {
    return std::max<std::size_t>(2, budget.reserve() / 4);
}

listener open_lock_port(const config::server_config& configuration,
                        std::vector<posix::descriptor> inherited) {
    return inherited.empty() ? listener{configuration.listen.value_or(config::listen_default())}
                             : listener{std::move(inherited)};
}

// The host that an administrator's requests may name besides addresses and localhost. Nothing: all
// of it is Unix sockets, which no browser reaches.
std::optional<std::string> host_to_check(const listener& inherited) {
    const auto& sockets = inherited.sockets();
    const bool none_is_tcp =
        std::all_of(sockets.begin(), sockets.end(), std::mem_fn(&listening_socket::is_unix));
    return none_is_tcp ? std::nullopt : std::optional{std::string{}};
}
std::optional<std::string> host_to_check(const config::address& configured) {
    const auto* const tcp = std::get_if<config::tcp_address>(&configured);
    return tcp ? std::optional{tcp->host} : std::nullopt;
}

// The control loop's side of the server: it starts the shards, hears the signals, and walks the
// shutdown through its steps. Runs on the thread that called run().
class server {
public:
    server(const config::server_config& configuration, inherited_sockets inherited);
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server();

    void run();

private:
    enum class stage { serving, shutting_down };

    void open_shards();
    void add_reloads();
    [[nodiscard]] outside_counts count_outside() const;
    [[nodiscard]] heap_keeper::crowd count_sessions();
    void open_http(inherited_sockets inherited);
    void describe_http();
    void log_addresses();
    void tell_service_manager();
    [[nodiscard]] std::string status_after(const std::vector<std::string_view>& failed) const;
    void await_signal();
    void on_signal(int number);
    void begin_shutdown();
    void drain();
    void close_sessions();
    void stop();
    [[nodiscard]] bool end_shards();
    [[noreturn]] void leave();

    // Posts `step` to every shard, and goes on with `then` on the control loop when all have called
    // back, or when the time is over: for a shard that has stalled nobody waits longer.
    void on_all_shards(void (shard::*step)(shard::callback), core::nanoseconds patience,
                       std::function<void()> then);

    config::server_config configuration_;
    logger log_;
    std::optional<audit_log> audit_;
    loop loop_{one_thread_hint};
    boost::asio::signal_set signals_{loop_, SIGTERM, SIGINT, SIGHUP};
    loop_timer timer_{loop_};
    service_manager manager_{loop_, log_};
    reload reload_{loop_, log_};
    std::optional<tls_files> tls_;
    std::optional<access_file> access_;
    listener listener_;
    shard_surroundings around_;
    watchdog watchdog_;
    health health_{watchdog_};
    heap_keeper heap_{loop_, [this] { return count_sessions(); }};
    metrics metrics_;
    std::optional<http_port> ops_;  // none: not configured, and so the next two
    std::optional<admin::admin_api> admin_api_;
    std::optional<http_port> admin_;
    std::uint64_t step_ = 0;  // of the shutdown
    std::size_t shards_awaited_ = 0;
    stage stage_ = stage::serving;
};

server::server(const config::server_config& configuration, inherited_sockets inherited)
    : configuration_{configuration},
      log_{configuration.log_level, configuration.log_format},
      tls_{open_tls_files(configuration)},
      access_{open_access_file(configuration)},
      listener_{open_lock_port(configuration, std::move(inherited.listen))},
      around_{.access_at_start = access_ ? access_->policy() : access_policy{},
              .hasher = make_hasher(),
              .io_timeout = configuration.io_timeout,
              .tls_at_start = tls_ ? tls_->setting() : tls_setting{},
              .log = &log_,
              .remembers_ownership =
                  configuration.admin_listen.has_value() || !inherited.admin.empty()},
      watchdog_{loop_, shard_count(configuration),
                [this](std::size_t number, shard::callback answer) {
                    around_.shards[number]->ask(std::move(answer));
                },
                log_},
      metrics_{around_, [this] { return count_outside(); }} {
    if (!configuration.audit_log.empty()) {
        around_.audit = &audit_.emplace(configuration.audit_log, log_);
    }
    const std::uint64_t descriptors = raise_descriptor_limit();
    open_shards();
    add_reloads();
    open_http(std::move(inherited));
    around_.accepting.budget.open(descriptors);
    describe_http();
    if (around_.accepting.budget.connections_max() < 1) {
        throw std::runtime_error{"the descriptor limit of " + std::to_string(descriptors) +
                                 " leaves none for connections"};
    }
}

server::~server() {
    for (const auto& each : around_.shards) {
        each->stop_and_join();
    }
}

bool server::end_shards() {
    bool all = true;
    for (const auto& each : around_.shards) {
        all = each->stop_and_join_within(join_time_max) && all;
    }
    return all;
}

// Without the destructors: a thread that cannot be joined may use anything.
void server::leave() {
    listener_.remove_file();
    for (auto* const port : {&ops_, &admin_}) {
        if (*port) {
            (*port)->remove_file();
        }
    }
    if (audit_) {
        audit_->finish(last_words_time);
    }
    log_.flush();
    std::_Exit(static_cast<int>(exit_status::failed));
}

void server::open_shards() {
    for (std::size_t number = 0; number < shard_count(configuration_); ++number) {
        around_.shards.push_back(std::make_unique<shard>(around_, number));
        for (const listening_socket& socket : listener_.sockets()) {
            around_.shards.back()->add_listening(duplicate(socket));
        }
    }
}

void server::add_reloads() {
    if (tls_) {
        reload_.add("tls", [this] {
            return tls_->read_again([this](const tls_setting& newest) {
                for (const auto& each : around_.shards) {
                    each->adopt_tls(newest);
                }
            });
        });
    }
    if (access_) {
        reload_.add("acl", [this] {
            return access_->read_again([this](const access_policy& newer) {
                for (const auto& each : around_.shards) {
                    each->adopt_rules(newer);
                }
            });
        });
    }
    // Standard output cannot be opened anew.
    if (audit_ && configuration_.audit_log != "-") {
        reload_.add("audit", [this] { return audit_->reopen(); });
    }
}

outside_counts server::count_outside() const {
    return {.tls_handshake_errors = around_.tls_handshake_errors,
            .acl_denials = around_.acl_denials,
            .audit_lost_events = audit_ ? audit_->lost_events() : 0,
            .reload_failures_tls = reload_.failures("tls"),
            .reload_failures_acl = reload_.failures("acl"),
            .reload_failures_audit = reload_.failures("audit")};
}

heap_keeper::crowd server::count_sessions() {
    heap_keeper::crowd sum;
    for (const auto& each : around_.shards) {
        sum.most += each->take_sessions_peak();
        sum.sessions += each->counters().sessions();
    }
    return sum;
}

void server::open_http(inherited_sockets inherited) {
    const auto serve_ops = [this](listener where) {
        ops_.emplace(loop_, std::move(where), ops_service(health_, metrics_, log_));
    };
    const auto serve_admin = [this](listener where, std::optional<std::string> host) {
        admin_api_.emplace(loop_, around_, std::move(host));
        admin_.emplace(loop_, std::move(where), admin_api_->service(log_));
    };
    if (!inherited.ops.empty()) {
        serve_ops(listener{std::move(inherited.ops)});
    } else if (const auto& where = configuration_.ops_listen) {
        serve_ops(listener{*where});
    }
    if (!inherited.admin.empty()) {
        listener where{std::move(inherited.admin)};
        const std::optional<std::string> host = host_to_check(where);
        serve_admin(std::move(where), host);
    } else if (const auto& where = configuration_.admin_listen) {
        serve_admin(listener{*where, admin_socket_mode}, host_to_check(*where));
    }
}

// What is known only when everything is open.
void server::describe_http() {
    const std::size_t connections_max = http_connections_max(around_.accepting.budget);
    if (ops_) {
        ops_->connections_max(connections_max);
    }
    if (!admin_) {
        return;
    }
    admin_->connections_max(connections_max);
    admin_api_->describe({.listen = listener_.addresses(),
                          .ops_listen = ops_ ? ops_->addresses() : "",
                          .admin_listen = admin_->addresses(),
                          .tls = configuration_.tls(),
                          .mutual_tls = configuration_.mutual_tls(),
                          .acl_file = configuration_.acl_file,
                          .audit_log = configuration_.audit_log,
                          .io_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
                              configuration_.io_timeout),
                          .threads = around_.shards.size()},
                         connections_max / 2);
}

void server::run() {
    await_signal();
    for (const auto& each : around_.shards) {
        each->start();
    }
    if (ops_ || manager_.watches()) {
        watchdog_.start();
    }
    heap_.start();
    health_.begin_serving();
    log_addresses();
    tell_service_manager();
    loop_.run();
    if (!end_shards()) {
        log_.write(log_level::error, "a shard has stalled: its clients could not be told to go");
        leave();
    }
    if (audit_) {
        audit_->finish(configuration_.io_timeout);
    }
    log_.write(log_level::info, "stopped");
}

void server::log_addresses() {
    if (ops_) {
        const std::string addresses = ops_->addresses();
        log_.write(log_level::info, "ops listening", {{.key = "address", .value = addresses}});
    }
    if (admin_) {
        const std::string addresses = admin_->addresses();
        log_.write(log_level::info, "admin listening", {{.key = "address", .value = addresses}});
        if (!admin_->is_local()) {
            log_.write(log_level::warn,
                       "the admin API has no login, and other machines can reach it",
                       {{.key = "address", .value = addresses}});
        }
    }
    for (const listening_socket& socket : listener_.sockets()) {
        log_.write(
            log_level::info, "listening",
            {{.key = "address", .value = socket.address},
             {.key = "version", .value = MONOLOCK_VERSION},
             {.key = "threads", .value = std::uint64_t{around_.shards.size()}},
             {.key = "connections_max", .value = around_.accepting.budget.connections_max()}});
    }
}

void server::tell_service_manager() {
    reload_.observe(
        {.begins = [this] { manager_.reloading(); },
         .ended = [this](const auto& failed) { manager_.ready(status_after(failed)); }});
    manager_.keep_alive_while([this] { return watchdog_.all_turn(); });
    manager_.ready(status_after({}));
}

// What a reload that failed for some parts leaves behind, for people.
std::string server::status_after(const std::vector<std::string_view>& failed) const {
    std::string text = "serving on ";
    telemetry::append_logfmt_value(text, listener_.addresses());
    const char* before = "; the last reload failed, and the log says why: ";
    for (const std::string_view name : failed) {
        text.append(before).append(name);
        before = ", ";
    }
    return text;
}

void server::await_signal() {
    signals_.async_wait([this](const boost::system::error_code& stopped, int number) {
        if (!stopped) {
            on_signal(number);
            await_signal();
        }
    });
}

void server::on_signal(int number) {
    if (number == SIGHUP) {
        reload_.request();
        return;
    }
    switch (stage_) {
        case stage::serving:
            begin_shutdown();
            return;
        case stage::shutting_down:
            leave();
    }
}

void server::begin_shutdown() {
    stage_ = stage::shutting_down;
    health_.begin_shutdown();
    manager_.stopping(shutdown_time_max(configuration_),
                      "shutting down: serving for another " +
                          config::format_duration(configuration_.shutdown_delay));
    log_.write(log_level::info, "shutting down");
    if (configuration_.shutdown_delay <= core::nanoseconds{0}) {
        drain();
        return;
    }
    // While the delay lasts the server works as ever: only who asks for its health is told.
    timer_.expires_after(configuration_.shutdown_delay);
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            drain();
        }
    });
}

// All shards stop granting before the first session ends, so that nobody is promoted into a server
// that is going away.
void server::drain() {
    reload_.close();
    manager_.status("shutting down: all clients are told to go");
    listener_.close();
    on_all_shards(&shard::begin_drain, begin_drain_time_max, [this] { close_sessions(); });
}

void server::close_sessions() {
    // The shards' own deadlines end what lingers.
    on_all_shards(&shard::finish_drain, configuration_.io_timeout + std::chrono::seconds{1},
                  [this] { stop(); });
}

void server::stop() {
    ++step_;
    timer_.cancel();
    signals_.cancel();
    loop_.stop();
}

void server::on_all_shards(void (shard::*step)(shard::callback), core::nanoseconds patience,
                           std::function<void()> then) {
    shards_awaited_ = around_.shards.size();
    const std::uint64_t number = ++step_;
    for (const auto& each : around_.shards) {
        ((*each).*step)([this, number, then] {
            boost::asio::post(loop_, [this, number, then] {
                if (number == step_ && --shards_awaited_ == 0) {
                    then();
                }
            });
        });
    }
    timer_.expires_after(patience);
    timer_.async_wait([this, number, then](const boost::system::error_code& stopped) {
        if (!stopped && number == step_) {
            then();
        }
    });
}

}  // namespace

exit_status run(const config::server_config& configuration) {
    std::signal(SIGPIPE, SIG_IGN);
    prepare_heap();
    server serving{configuration, take_inherited_sockets(configuration)};
    serving.run();
    return exit_status::ok;
}

}  // namespace monolock::server
