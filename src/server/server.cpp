#include "server/server.hpp"

#include <sys/random.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
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
#include "server/failover/coordinator.hpp"
#include "server/failover/etcd_files.hpp"
#include "server/health.hpp"
#include "server/heap.hpp"
#include "server/http_port.hpp"
#include "server/inherited_sockets.hpp"
#include "server/listener.hpp"
#include "server/lock_service.hpp"
#include "server/metrics.hpp"
#include "server/ops_endpoints.hpp"
#include "server/reload.hpp"
#include "server/server_settings.hpp"
#include "server/service_manager.hpp"
#include "server/shard.hpp"
#include "server/tls_files.hpp"
#include "server/watchdog.hpp"
#include "telemetry/escape.hpp"

namespace monolock::server {

namespace {

using namespace std::chrono_literals;
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

// The loop of a shard ends within a turn; more than this it gets only if it has stalled.
constexpr std::chrono::seconds join_time_max{1};

// Whoever may administer is in the socket's group.
constexpr mode_t admin_socket_mode = 0660;

config::address lock_address(const config::server_config& configuration) {
    return configuration.listen.value_or(config::listen_default());
}

listener open_lock_port(const config::server_config& configuration,
                        std::vector<posix::descriptor> inherited) {
    return inherited.empty() ? listener{lock_address(configuration)}
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

    [[nodiscard]] exit_status run();

private:
    enum class stage { serving, shutting_down };

    void hold_to_mandate();
    void prepare_lock_port();
    void open_shards();
    void add_reloads();
    [[nodiscard]] outside_counts count_outside() const;
    [[nodiscard]] std::optional<failover_counts> count_failover() const;
    [[nodiscard]] heap_keeper::crowd count_sessions();
    [[nodiscard]] admin::standing stand() const;
    void open_http(inherited_sockets inherited);
    void describe_http();
    void log_http_addresses();
    void log_lock_addresses();
    void tell_service_manager();
    [[nodiscard]] std::string status_after(const std::vector<std::string_view>& failed) const;
    void await_signal();
    void on_signal(int number);
    void begin_shutdown();
    void drain(std::string why = {});
    void retire();
    void await_last_connection();
    void stop();
    [[nodiscard]] bool end_shards();
    [[noreturn]] void leave();

    // A server by itself is active from the start; one of several when its coordinator says so.
    void stand_by();
    void become_active();
    void step_down();
    void delay_grants();
    [[nodiscard]] role_orders orders();

    config::server_config configuration_;
    logger log_;
    std::optional<audit_log> audit_;
    loop loop_{one_thread_hint};
    boost::asio::signal_set signals_{loop_, SIGTERM, SIGINT, SIGHUP};
    loop_timer timer_{loop_};
    loop_timer grant_timer_{loop_};
    bool delays_grants_ = false;  // of a server by itself
    service_manager manager_{loop_, log_};
    reload reload_{loop_, log_};
    std::optional<admin::standing::last_reload> reloaded_;
    std::optional<tls_files> tls_;
    std::optional<access_file> access_;
    mandate mandate_;
    resolved_address lock_place_;  // of one of several, to be opened when it is active
    shard_surroundings around_;
    lock_service service_{loop_, around_};
    watchdog watchdog_;
    health health_{watchdog_};
    heap_keeper heap_{loop_, [this] { return count_sessions(); }};
    metrics metrics_;
    std::optional<http_port> ops_;  // none: not configured, and so the next two
    std::optional<admin::admin_api> admin_api_;
    std::optional<http_port> admin_;
    std::optional<coordinator> coordinator_;  // none: this server is the only one
    stage stage_ = stage::serving;
    bool draining_ = false;  // the delay of the shutdown is over
    core::time_point drained_at_most_;
    exit_status end_ = exit_status::ok;
};

server::server(const config::server_config& configuration, inherited_sockets inherited)
    : configuration_{configuration},
      log_{configuration.log_level, configuration.log_format},
      tls_{open_tls_files(configuration)},
      access_{open_access_file(configuration)},
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
    if (configuration.one_of_several()) {
        hold_to_mandate();
    }
    open_shards();
    if (configuration.one_of_several()) {
        if (const auto wrong = check_etcd_files(configuration); !wrong.empty()) {
            throw std::runtime_error{config::joined(wrong)};
        }
        prepare_lock_port();
        coordinator_.emplace(coordination_settings(configuration), around_, mandate_, orders());
    } else {
        service_.open(open_lock_port(configuration, std::move(inherited.listen)));
    }
    add_reloads();
    open_http(std::move(inherited));
    around_.accepting.budget.open(descriptors, descriptors_later(configuration));
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
    service_.remove_file();
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

// Before there are shards: each takes over what its surroundings say.
void server::hold_to_mandate() {
    around_.mandate = &mandate_;
    around_.tokens.hold_to(mandate_);
    around_.tracks_leases = true;
    if (!configuration_.grant_delay) {
        around_.lease_covered_max = configuration_.grant_delay_max;
    }
}

// It is opened only when this server becomes active, so what can be done or seen earlier should be:
// a resolver that hangs must not hold up this loop then. Another server on this machine may have
// the address now, being active.
void server::prepare_lock_port() {
    lock_place_ = resolve(lock_address(configuration_));
    const auto found = find_obstacle(lock_place_);
    if (found && !found->may_pass) {
        throw std::runtime_error{found->what};
    }
    if (found) {
        log_.write(log_level::warn,
                   "this server cannot become active as long as another program has its address",
                   {{.key = "reason", .value = found->what}});
    }
}

void server::open_shards() {
    for (std::size_t number = 0; number < shard_count(configuration_); ++number) {
        around_.shards.push_back(std::make_unique<shard>(around_, number));
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
    reload_.settle_by(
        [this](reload::callback settled) {
            on_every_shard(loop_, around_, &shard::ask, std::move(settled));
        },
        std::chrono::seconds{5});
}

outside_counts server::count_outside() const {
    return {.tls_handshake_errors = around_.tls_handshake_errors,
            .acl_denials = around_.acl_denials,
            .audit_lost_events = audit_ ? audit_->lost_events() : 0,
            .reload_failures_tls = reload_.failures("tls"),
            .reload_failures_acl = reload_.failures("acl"),
            .reload_failures_audit = reload_.failures("audit"),
            .failover = count_failover()};
}

std::optional<failover_counts> server::count_failover() const {
    if (!coordinator_) {
        return std::nullopt;
    }
    const role_status now = coordinator_->status();
    return failover_counts{.active = now.role == coordination::role::active,
                           .term = now.term.value_or(coordination::term{}).value,
                           .etcd_errors = now.etcd_errors,
                           .failovers = now.failovers,
                           .leases_uncovered = around_.leases_uncovered};
}

heap_keeper::crowd server::count_sessions() {
    heap_keeper::crowd sum;
    for (const auto& each : around_.shards) {
        sum.most += each->take_sessions_peak();
        sum.sessions += each->counters().sessions();
    }
    return sum;
}

admin::standing server::stand() const {
    return {.state = health_.state(),
            .delays_grants = coordinator_ ? coordinator_->status().delays_grants : delays_grants_,
            .sessions_max = static_cast<std::uint64_t>(around_.accepting.budget.connections_max()),
            .acl_denials = around_.acl_denials,
            .accept_errors = around_.accepting.errors,
            .tls_handshake_errors = around_.tls_handshake_errors,
            .audit_lost_events = audit_ ? audit_->lost_events() : 0,
            .audit_is_refused = audit_ && audit_->is_refused(),
            .reloaded = reloaded_};
}

void server::open_http(inherited_sockets inherited) {
    const auto serve_ops = [this](listener where) {
        ops_.emplace(loop_, std::move(where), ops_service(health_, metrics_, log_));
    };
    const auto serve_admin = [this](listener where, std::optional<std::string> host) {
        admin_api_.emplace(loop_, around_, std::move(host));
        admin_api_->tell_of_standing([this] { return stand(); });
        if (coordinator_) {
            admin_api_->tell_of_role([this] { return coordinator_->status(); });
        }
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
    admin_api_->describe({.listen = service_.addresses(),
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

exit_status server::run() {
    await_signal();
    if (!coordinator_) {
        delay_grants();
    }
    for (const auto& each : around_.shards) {
        each->start();
    }
    if (ops_ || admin_ || manager_.watches()) {
        watchdog_.start();
    }
    heap_.start();
    log_http_addresses();
    if (coordinator_) {
        stand_by();
        coordinator_->start();
    } else {
        health_.begin_serving();
        log_lock_addresses();
    }
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
    return end_;
}

void server::log_http_addresses() {
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
}

void server::log_lock_addresses() {
    for (const listening_socket& socket : service_.sockets()) {
        log_.write(
            log_level::info, "listening",
            {{.key = "address", .value = socket.address},
             {.key = "version", .value = MONOLOCK_VERSION},
             {.key = "threads", .value = std::uint64_t{around_.shards.size()}},
             {.key = "connections_max", .value = around_.accepting.budget.connections_max()}});
    }
}

void server::tell_service_manager() {
    reload_.observe({.begins = [this] { manager_.reloading(); },
                     .ended =
                         [this](const auto& failed) {
                             reloaded_ = {.at = std::chrono::system_clock::now(), .failed = failed};
                             manager_.ready(status_after(failed));
                         }});
    manager_.keep_alive_while([this] { return watchdog_.all_turn(); });
    manager_.ready(status_after({}));
}

// What a reload that failed for some parts leaves behind, for people.
std::string server::status_after(const std::vector<std::string_view>& failed) const {
    std::string text = service_.sockets().empty() ? "standby" : "serving on ";
    if (!service_.sockets().empty()) {
        telemetry::append_logfmt_value(text, service_.addresses());
    }
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
    // While the delay lasts the server works as ever: only who asks for its health is told. But a
    // standby has no client who needs the time, and must not get any now.
    if (coordinator_) {
        coordinator_->withdraw();
    }
    timer_.expires_after(configuration_.shutdown_delay);
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            drain();
        }
    });
}

// `why` is of a server that gives its role up, if it is not an operator's order.
void server::drain(std::string why) {
    draining_ = true;
    reload_.close();
    manager_.status("shutting down: all clients are told to go");
    drained_at_most_ = std::chrono::steady_clock::now() + closing_time_max(configuration_);
    if (!coordinator_) {
        service_.close(closing_time_max(configuration_),
                       [this](lock_service::outcome) { await_last_connection(); });
        return;
    }
    // It steps down first, if it is active. A store that does not answer keeps nobody for ever.
    coordinator_->shut_down(std::move(why));
    timer_.expires_after(lock_service::first_step_time_max + closing_time_max(configuration_) +
                         resigning_time_max(configuration_));
    timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            log_.write(log_level::warn, "etcd was not told that this server is going");
            stop();
        }
    });
}

// A server that was not active, or is not any more, does not wait for the delay to end.
void server::retire() {
    if (!draining_) {
        draining_ = true;
        reload_.close();
        drained_at_most_ = std::chrono::steady_clock::now() + closing_time_max(configuration_);
    }
    await_last_connection();
}

// Clients that are slow to hear that the server goes delay its end, but not its successor.
void server::await_last_connection() {
    timer_.cancel();
    const core::nanoseconds left = drained_at_most_ - std::chrono::steady_clock::now();
    service_.await_last_connection(std::max(left, core::nanoseconds{0}), [this] { stop(); });
}

void server::stop() {
    timer_.cancel();
    signals_.cancel();
    loop_.stop();
}

// --- one of several servers

role_orders server::orders() {
    const auto on_this_loop = [this](void (server::*act)()) {
        return [this, act] { boost::asio::post(loop_, [this, act] { (this->*act)(); }); };
    };
    return {.open = on_this_loop(&server::become_active),
            .step_down = on_this_loop(&server::step_down),
            .retired = on_this_loop(&server::retire)};
}

void server::stand_by() {
    health_.stand_by();
    if (stage_ == stage::serving) {
        // What must be the same for all of them, so that their logs can be compared.
        const auto& delay = configuration_.grant_delay;
        log_.write(
            log_level::info, "standing by",
            {{.key = "name", .value = name_among_servers(configuration_)},
             {.key = "etcd_endpoints", .value = to_string(configuration_.etcd_endpoints)},
             {.key = "etcd_prefix", .value = configuration_.etcd_prefix},
             {.key = "etcd_ttl", .value = config::format_duration(configuration_.etcd_ttl)},
             {.key = "grant_delay", .value = delay ? config::format_duration(*delay) : "auto"}});
        manager_.status(status_after({}));
    }
}

// An address that cannot be had is no reason to keep the lock space from the other servers.
void server::become_active() {
    if (draining_) {
        return;  // the coordinator was told, and has another order under way
    }
    try {
        service_.open(listener{lock_place_});
    } catch (const std::runtime_error& error) {
        log_.write(log_level::error, "cannot listen", {{.key = "reason", .value = error.what()}});
        end_ = exit_status::failed;
        stage_ = stage::shutting_down;
        health_.begin_shutdown();
        drain(error.what());
        return;
    }
    health_.begin_serving();
    describe_http();
    log_lock_addresses();
    manager_.status(status_after({}));
}

void server::step_down() {
    stand_by();
    std::optional<core::nanoseconds> patience;
    if (draining_) {
        patience = closing_time_max(configuration_);
    }
    service_.close(patience, [this](lock_service::outcome how) {
        describe_http();
        switch (how) {
            case lock_service::outcome::all_ended:
                coordinator_->sessions_ended();
                return;
            case lock_service::outcome::some_stalled:
                log_.write(log_level::error,
                           "a shard has stalled: this server gives up its role without resigning, "
                           "and the next "
                           "one waits for it");
                coordinator_->sessions_abandoned();
                return;
        }
    });
}

// After a start: owners whom an earlier process lost have the time to notice. To be called before
// the shards run, for claims wait in the port already.
void server::delay_grants() {
    const std::chrono::milliseconds delay = configuration_.grant_delay.value_or(0ms);
    if (delay <= 0ms) {
        return;
    }
    around_.tokens.close();
    delays_grants_ = true;
    log_.write(log_level::info, grant_delay_begins,
               {{.key = "grant_delay", .value = config::format_duration(delay)}});
    grant_timer_.expires_after(delay);
    grant_timer_.async_wait([this](const boost::system::error_code& stopped) {
        if (!stopped) {
            around_.tokens.open();
            delays_grants_ = false;
            log_.write(log_level::info, grant_delay_over);
            for (const auto& each : around_.shards) {
                each->retry_grants();
            }
        }
    });
}

// What a peer that is gone and a file that may not grow say, the failed write says too. The signals
// that the server hears reach it whatever mask it was started with: whoever blocks them for itself
// and starts programs passes that on.
void prepare_signals() {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    sigset_t heard;
    sigemptyset(&heard);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        sigaddset(&heard, number);
    }
    pthread_sigmask(SIG_UNBLOCK, &heard, nullptr);
}

}  // namespace

exit_status run(const config::server_config& configuration) {
    prepare_signals();
    prepare_heap();
    inherited_sockets inherited = take_inherited_sockets(configuration);
    if (configuration.one_of_several() && !inherited.listen.empty()) {
        std::cerr << "monolock: -etcd-endpoints: a service manager's socket for clients would be "
                     "open while another server is active; let the server listen by itself\n";
        return exit_status::usage;
    }
    server serving{configuration, std::move(inherited)};
    return serving.run();
}

}  // namespace monolock::server
