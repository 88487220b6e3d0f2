// The command line and the environment of the server, against the grammar and the precedence read
// off docs/operating.md: the same words walked by hand, and the last value of each option read by
// the parser of its kind. And what a service manager says in its environment.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/duration.hpp"
#include "config/etcd_endpoints.hpp"
#include "config/server_config.hpp"
#include "fuzz/choices.hpp"
#include "fuzz/ip_oracle.hpp"
#include "fuzz/line_oracle.hpp"
#include "fuzz/pieces.hpp"
#include "protocol/utf8.hpp"
#include "server/service_environment.hpp"

namespace {

namespace config = monolock::config;
namespace fuzz = monolock::fuzz;
namespace server = monolock::server;
using fuzz::require;

struct flag {
    std::string_view name;
    config::option_kind kind = config::option_kind::value;
    std::string_view variable{};
};

using enum config::option_kind;
constexpr std::array flags{
    flag{"listen", value, "MONOLOCK_LISTEN_ADDRESS"},
    flag{"ops-listen", value, "MONOLOCK_OPS_LISTEN_ADDRESS"},
    flag{"admin-listen", value, "MONOLOCK_ADMIN_LISTEN_ADDRESS"},
    flag{"tls-cert", value, "MONOLOCK_TLS_CERT"},
    flag{"tls-key", value, "MONOLOCK_TLS_KEY"},
    flag{"tls-client-ca", value, "MONOLOCK_TLS_CLIENT_CA"},
    flag{"acl-file", value, "MONOLOCK_ACL_FILE"},
    flag{"audit-log", value, "MONOLOCK_AUDIT_LOG"},
    flag{"io-timeout", value, "MONOLOCK_IO_TIMEOUT"},
    flag{"log-level", value, "MONOLOCK_LOG_LEVEL"},
    flag{"log-format", value, "MONOLOCK_LOG_FORMAT"},
    flag{"threads", value, "MONOLOCK_THREADS"},
    flag{"shutdown-delay", value, "MONOLOCK_SHUTDOWN_DELAY"},
    flag{"etcd-endpoints", value, "MONOLOCK_ETCD_ENDPOINTS"},
    flag{"etcd-prefix", value, "MONOLOCK_ETCD_PREFIX"},
    flag{"etcd-ttl", value, "MONOLOCK_ETCD_TTL"},
    flag{"etcd-ca", value, "MONOLOCK_ETCD_CA"},
    flag{"etcd-cert", value, "MONOLOCK_ETCD_CERT"},
    flag{"etcd-key", value, "MONOLOCK_ETCD_KEY"},
    flag{"etcd-user-file", value, "MONOLOCK_ETCD_USER_FILE"},
    flag{"advertise", value, "MONOLOCK_ADVERTISE"},
    flag{"grant-delay", value, "MONOLOCK_GRANT_DELAY"},
    flag{"grant-delay-max", value, "MONOLOCK_GRANT_DELAY_MAX"},
    flag{"check", toggle},
    flag{"version", request},
    flag{"h", request},
    flag{"help", request},
};

// The words and variables of an input: its parts between NULs, those that look like NAME=value
// being variables.
class input {
public:
    explicit input(std::string text) : text_{std::move(text)} {
        for (char* at = text_.data(); at < text_.data() + text_.size(); at += std::strlen(at) + 1) {
            char* const equals = std::strchr(at, '=');
            const bool upper = *at >= 'A' && *at <= 'Z';
            if (upper && equals != nullptr && variable_count_ < variables_.size()) {
                variables_[variable_count_++] = {{at, equals}, equals + 1};
            } else if (word_count_ < words_.size()) {
                words_[word_count_++] = at;
            }
        }
    }

    [[nodiscard]] std::span<const char* const> words() const {
        return std::span{words_}.first(word_count_);
    }
    [[nodiscard]] const char* variable(std::string_view name) const {
        for (const auto& [known, value] : std::span{variables_}.first(variable_count_)) {
            if (known == name) {
                return value;
            }
        }
        return nullptr;
    }

private:
    std::string text_;
    std::array<const char*, 24> words_{};
    std::size_t word_count_ = 0;
    std::array<std::pair<std::string_view, const char*>, 12> variables_{};
    std::size_t variable_count_ = 0;
};

// What a walk over the words comes to.
struct walk {
    bool wrong = false;
    std::optional<std::string_view> request;
    std::vector<std::pair<const flag*, std::string_view>> settings;
    std::vector<std::string_view> rest;
};

walk walk_over(std::span<const char* const> words, bool anywhere) {
    walk out;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string_view word = words[at];
        if (word == "--" || word.size() < 2 || word[0] != '-') {
            const std::size_t skipped = word == "--" ? 1 : 0;
            if (skipped == 0 && anywhere) {
                out.rest.push_back(word);
                continue;
            }
            out.rest.insert(out.rest.end(),
                            words.begin() + static_cast<std::ptrdiff_t>(at + skipped), words.end());
            return out;
        }
        const std::size_t name_at = word[1] == '-' ? 2 : 1;
        const std::size_t equals = std::min(word.find('=', name_at), word.size());
        const auto* const found =
            std::ranges::find(flags, word.substr(name_at, equals - name_at), &flag::name);
        const bool has_value = equals < word.size();
        const bool takes_next = !has_value && found != flags.end() && found->kind == value;
        if (found == flags.end() || (found->kind != value && has_value) ||
            (takes_next && at + 1 == words.size())) {
            out.wrong = true;
            return out;
        }
        if (found->kind == request) {
            out.request = found->name;
            return out;
        }
        const std::string_view given = takes_next  ? std::string_view{words[++at]}
                                       : has_value ? word.substr(equals + 1)
                                                   : "";
        out.settings.emplace_back(found, given);
    }
    return out;
}

bool is_duration_from(std::string_view text, std::chrono::nanoseconds least) {
    const auto parsed = config::parse_duration(text);
    return parsed && *parsed >= least && *parsed <= std::chrono::hours{24} * 365;
}

// Whether the option takes the value.
bool takes(std::string_view name, std::string_view text) {
    if (name.ends_with("listen")) {
        return static_cast<bool>(config::parse_address(text));
    }
    if (name == "io-timeout" || name == "shutdown-delay") {
        return is_duration_from(text, std::chrono::nanoseconds{name == "io-timeout" ? 1 : 0});
    }
    if (name == "grant-delay" && text == "auto") {
        return true;
    }
    if (name == "grant-delay" || name == "grant-delay-max") {
        return is_duration_from(text, std::chrono::nanoseconds{name == "grant-delay" ? 0 : 1});
    }
    if (name == "etcd-endpoints") {
        return static_cast<bool>(config::parse_etcd_endpoints(text));
    }
    if (name == "etcd-ttl") {
        const auto parsed = config::parse_duration(text);
        return parsed && parsed->count() > 0 && *parsed <= std::chrono::hours{1} &&
               parsed->count() % 1'000'000'000 == 0;
    }
    if (name == "advertise") {
        return !text.empty() && text.size() <= 255 && monolock::protocol::is_valid_utf8(text) &&
               std::ranges::none_of(text, [](char c) { return c >= 0 && c < ' '; });
    }
    if (name == "log-level") {
        return text == "debug" || text == "info" || text == "warn" || text == "error";
    }
    if (name == "log-format") {
        return text == "text" || text == "json";
    }
    if (name == "threads") {
        return fuzz::is_number_up_to(text, 1024) && text.find_first_not_of('0') != text.npos;
    }
    return name == "check" || !text.empty();
}

using settings = std::map<std::string_view, std::string_view>;

std::string_view of(const settings& all, std::string_view name) {
    const auto found = all.find(name);
    return found == all.end() ? "" : found->second;
}

// What the server is told, or nothing if some of it is wrong.
std::optional<settings> oracle(const walk& words, const input& given) {
    settings last;
    bool wrong = words.wrong || !words.rest.empty();
    for (const auto& [option, text] : words.settings) {
        wrong |= !takes(option->name, text);
        last[option->name] = text;
    }
    for (const flag& each : flags) {
        const char* const text = each.variable.empty() ? nullptr : given.variable(each.variable);
        if (text != nullptr && *text != '\0' && !last.contains(each.name)) {
            wrong |= !takes(each.name, text);
            last[each.name] = text;
        }
    }
    for (const auto& [name, partner] : {std::pair{"tls-cert", "tls-key"},
                                        {"tls-key", "tls-cert"},
                                        {"tls-client-ca", "tls-cert"},
                                        {"acl-file", "tls-client-ca"},
                                        {"etcd-prefix", "etcd-endpoints"},
                                        {"etcd-ttl", "etcd-endpoints"},
                                        {"etcd-ca", "etcd-endpoints"},
                                        {"etcd-cert", "etcd-endpoints"},
                                        {"etcd-cert", "etcd-key"},
                                        {"etcd-key", "etcd-endpoints"},
                                        {"etcd-key", "etcd-cert"},
                                        {"etcd-user-file", "etcd-endpoints"},
                                        {"advertise", "etcd-endpoints"}}) {
        wrong |= last.contains(name) && !last.contains(partner);
    }
    wrong |= of(last, "grant-delay") == "auto" && !last.contains("etcd-endpoints");
    wrong |= (last.contains("etcd-ca") || last.contains("etcd-cert")) &&
             !of(last, "etcd-endpoints").starts_with("https:");
    return wrong ? std::nullopt : std::optional{std::move(last)};
}

void require_address(const std::optional<config::address>& found, const settings& told,
                     std::string_view name) {
    require(found.has_value() == told.contains(name));
    require(!found || *found == *config::parse_address(of(told, name)));
}

void require_same(const config::server_config& found, const settings& told) {
    require_address(found.listen, told, "listen");
    require_address(found.ops_listen, told, "ops-listen");
    require_address(found.admin_listen, told, "admin-listen");
    require(found.tls_cert == of(told, "tls-cert") && found.tls_key == of(told, "tls-key"));
    require(found.tls_client_ca == of(told, "tls-client-ca"));
    require(found.acl_file == of(told, "acl-file") && found.audit_log == of(told, "audit-log"));
    const auto duration = [&](std::string_view name, std::chrono::nanoseconds absent) {
        return told.contains(name) ? *config::parse_duration(of(told, name)) : absent;
    };
    require(found.io_timeout == duration("io-timeout", std::chrono::seconds{5}));
    require(found.shutdown_delay == duration("shutdown-delay", {}));
    require(to_string(found.log_level) ==
            (told.contains("log-level") ? of(told, "log-level") : "info"));
    require(to_string(found.log_format) ==
            (told.contains("log-format") ? of(told, "log-format") : "text"));
    require(found.threads.has_value() == told.contains("threads"));
    require(!found.threads ||
            std::to_string(*found.threads) ==
                of(told, "threads").substr(of(told, "threads").find_first_not_of('0')));
    require(found.check_only == told.contains("check"));
}

void check_arguments(const input& given, const config::environment& variables) {
    const auto outcome = config::parse_server_arguments(given.words(), variables);
    const walk words = walk_over(given.words(), false);
    if (words.request && !words.wrong) {
        const auto* const version = std::get_if<config::version_text>(&outcome);
        require((version != nullptr) == (words.request == "version"));
        require(version != nullptr || std::holds_alternative<config::help_text>(outcome));
        return;
    }
    const auto expected = oracle(words, given);
    if (const auto* const found = std::get_if<config::server_config>(&outcome)) {
        require(expected.has_value());
        require_same(*found, *expected);
        return;
    }
    require(!expected);
    const std::string& why = std::get<config::diagnostic>(outcome).text;
    require(!why.empty() && fuzz::is_one_line(why));
}

void check_anywhere(const input& given) {
    std::array<config::option, flags.size()> options{};
    std::ranges::transform(flags, options.begin(), [](const flag& each) {
        return config::option{.name = each.name, .kind = each.kind};
    });
    const auto outcome = config::scan_anywhere(options, given.words(), "-");
    const walk words = walk_over(given.words(), true);
    require(static_cast<bool>(outcome) == !words.wrong);
    if (!outcome) {
        return;
    }
    require(outcome->request.has_value() == words.request.has_value());
    require(!words.request || options[*outcome->request].name == *words.request);
    require(std::ranges::equal(
        outcome->settings, words.settings, [&](const auto& one, const auto& other) {
            return options[one.option].name == other.first->name && one.value == other.second;
        }));
    require(words.request || std::ranges::equal(outcome->rest, words.rest));
}

void check_service_manager(const input& given, const config::environment& variables) {
    constexpr pid_t self = 7;
    const auto text = [&](std::string_view name) {
        const char* const found = given.variable(name);
        return std::string_view{found == nullptr ? "" : found};
    };
    const auto names = server::passed_names(variables, self);
    if (text("LISTEN_PID") != "7") {
        require(names && names->empty());
    } else if (names) {
        std::string joined;
        for (const std::string& each : *names) {
            require(each.find(':') == std::string::npos);
            joined += each + ":";
        }
        const std::string_view list = text("LISTEN_FDNAMES");
        require(joined == list || joined == std::string{list} + ":" ||
                (list.empty() && joined.empty()));
        require(text("LISTEN_FDS") == std::to_string(names->size()));
    }
    if (const auto patience = server::watchdog_patience(variables, self)) {
        require(*patience > patience->zero() && *patience <= config::time_limit_max);
        require(text("WATCHDOG_PID").empty() || text("WATCHDOG_PID") == "7");
    }
    const std::string_view where = text("NOTIFY_SOCKET");
    const auto socket = server::notify_address(where);
    require(socket.has_value() == ((where.starts_with('/') || where.starts_with('@')) &&
                                   where.size() < sizeof(sockaddr_un::sun_path)));
    if (socket) {
        const std::string_view path{socket->address.sun_path,
                                    socket->size - offsetof(sockaddr_un, sun_path)};
        require(path.substr(1) == where.substr(1) && (path[0] == '/') == where.starts_with('/'));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const input given{std::string{fuzz::text_of(data, size)}};
    const config::environment variables = [&given](const char* name) {
        return given.variable(name);
    };
    check_arguments(given, variables);
    check_anywhere(given);
    check_service_manager(given, variables);
    return 0;
}
