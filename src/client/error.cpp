#include "monolock/error.hpp"

#include <array>
#include <cstdio>

#include "protocol/error_code.hpp"

namespace monolock {

namespace {

// Numbers of the server's codes: server_code_base + the code's byte.
constexpr int server_code_base = 0x100;
constexpr int server_code_last = 0x1FF;

std::string server_message(std::uint8_t code) {
    std::array<char, 8> hex{};
    std::snprintf(hex.data(), hex.size(), "0x%02x", static_cast<unsigned>(code));
    return "the server says " + std::string{hex.data()} + ": " +
           std::string{protocol::canonical_reason(static_cast<protocol::error_code>(code))};
}

std::string message_of(errc code) {
    switch (code) {
        case errc::empty_name:
            return "the lock name is empty";
        case errc::name_too_long:
            return "the lock name is longer than 255 bytes";
        case errc::name_not_utf8:
            return "the lock name is not valid UTF-8";
        case errc::lease_out_of_range:
            return "the lease is not between 1 ms and 4294967295 ms";
        case errc::invalid_address:
            return "invalid address";
        case errc::invalid_options:
            return "invalid client options";
        case errc::no_claim:
            return "the handle holds no claim";
        case errc::host_not_found:
            return "host not found";
        case errc::resolve_failed:
            return "the host name could not be resolved";
        case errc::connect_timeout:
            return "connecting took too long";
        case errc::dialer_failed:
            return "the dialer returned no connection";
        case errc::in_callback:
            return "acquiring in a callback would wait for itself";
        case errc::thread_unavailable:
            return "the background thread could not be started";
        case errc::tls_files:
            return "TLS cannot be set up from the files given";
        case errc::server_not_trusted:
            return "the server is not trusted";
        case errc::certificate_refused:
            return "the server refused the client certificate";
        case errc::tls_failed:
            return "the TLS handshake failed";
        case errc::acquire_timeout:
            return "the server did not answer the ACQUIRE in time";
        case errc::heartbeat_timeout:
            return "the server did not answer a heartbeat in time";
        case errc::connection_closed:
            return "the connection was closed";
        case errc::protocol_violation:
            return "the peer violated the protocol";
        case errc::other_process:
            return "the claim belongs to the parent process";
        case errc::stopped:
            return "stopped by the caller";
        case errc::busy:
            return "the lock is owned by somebody else";
        case errc::wait_expired:
            return "the lock was not granted in the time allowed";
        case errc::server_shutting_down:
        case errc::closed_by_administrator:
        case errc::unsupported_version:
        case errc::first_message_not_acquire:
        case errc::duplicate_acquire:
        case errc::unknown_message_type:
        case errc::server_empty_name:
        case errc::server_name_too_long:
        case errc::server_name_not_utf8:
        case errc::server_lease_not_positive:
        case errc::not_authorized:
            break;  // error_category_type answers for the whole range
    }
    return "unknown monolock error";
}

class error_category_type final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "monolock"; }

    [[nodiscard]] std::string message(int value) const override {
        if (value >= server_code_base && value <= server_code_last) {
            return server_message(static_cast<std::uint8_t>(value - server_code_base));
        }
        return message_of(static_cast<errc>(value));
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
        if (value == static_cast<int>(errc::stopped)) {
            return std::errc::operation_canceled;
        }
        if (value == static_cast<int>(errc::busy)) {
            return std::errc::resource_unavailable_try_again;
        }
        if (value == static_cast<int>(errc::connect_timeout) ||
            value == static_cast<int>(errc::acquire_timeout) ||
            value == static_cast<int>(errc::heartbeat_timeout) ||
            value == static_cast<int>(errc::wait_expired)) {
            return std::errc::timed_out;
        }
        return {value, *this};
    }
};

bool is_one_of(const std::error_code& code, std::initializer_list<errc> set) noexcept {
    for (const errc member : set) {
        if (code == make_error_code(member)) {
            return true;
        }
    }
    return false;
}

bool is_retryable(const std::error_code& code) noexcept {
    if (code.category() == std::system_category() || code.category() == std::generic_category()) {
        return static_cast<bool>(code);
    }
    const auto server = wire_code(code);
    return (server && *server < protocol::client_error_min) ||
           is_one_of(code, {errc::host_not_found, errc::resolve_failed, errc::connect_timeout,
                            errc::dialer_failed, errc::acquire_timeout, errc::heartbeat_timeout,
                            errc::connection_closed});
}

bool is_claim_lost(const std::error_code& code) noexcept {
    return wire_code(code) ||
           is_one_of(code, {errc::acquire_timeout, errc::heartbeat_timeout, errc::connection_closed,
                            errc::protocol_violation, errc::other_process});
}

bool is_misuse(const std::error_code& code) noexcept {
    return (wire_code(code).value_or(0) >= protocol::client_error_min &&
            !is_one_of(code, {errc::not_authorized})) ||
           is_one_of(code, {errc::empty_name, errc::name_too_long, errc::name_not_utf8,
                            errc::lease_out_of_range, errc::invalid_address, errc::invalid_options,
                            errc::no_claim, errc::in_callback});
}

class condition_category_type final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "monolock.condition"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<condition>(value)) {
            case condition::retryable:
                return "a new attempt may succeed";
            case condition::claim_lost:
                return "the claim is lost";
            case condition::denied:
                return "the server's rules refuse the lock";
            case condition::misuse:
                return "the request is wrong and will fail again";
            case condition::in_doubt:
                return "sent, and not answered";
        }
        return "unknown monolock condition";
    }

    [[nodiscard]] bool equivalent(const std::error_code& code, int value) const noexcept override {
        switch (static_cast<condition>(value)) {
            case condition::retryable:
                return is_retryable(code);
            case condition::claim_lost:
                return is_claim_lost(code);
            case condition::denied:
                return is_one_of(code, {errc::not_authorized, errc::certificate_refused});
            case condition::misuse:
                return is_misuse(code);
            case condition::in_doubt:
                return is_one_of(code, {errc::acquire_timeout, errc::heartbeat_timeout});
        }
        return false;
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const error_category_type category;
    return category;
}

const std::error_category& condition_category() noexcept {
    static const condition_category_type category;
    return category;
}

std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

std::error_condition make_error_condition(condition what) noexcept {
    return {static_cast<int>(what), condition_category()};
}

std::optional<std::uint8_t> wire_code(const std::error_code& code) noexcept {
    const bool from_server = code.category() == error_category() &&
                             code.value() >= server_code_base && code.value() <= server_code_last;
    if (!from_server) {
        return std::nullopt;
    }
    return static_cast<std::uint8_t>(code.value() - server_code_base);
}

error::error(std::error_code code, stage at, const std::string& detail)
    : std::system_error{detail.empty() ? std::system_error{code} : std::system_error{code, detail}},
      detail_{detail},
      at_{at} {}
error::error(const error&) noexcept = default;
error::error(error&&) noexcept = default;
error& error::operator=(const error&) noexcept = default;
error& error::operator=(error&&) noexcept = default;
error::~error() = default;

server_error::server_error(std::error_code code, stage at, const std::string& reason)
    : error{code, at, reason} {}
server_error::server_error(const server_error&) noexcept = default;
server_error::server_error(server_error&&) noexcept = default;
server_error& server_error::operator=(const server_error&) noexcept = default;
server_error& server_error::operator=(server_error&&) noexcept = default;
server_error::~server_error() = default;

}  // namespace monolock
