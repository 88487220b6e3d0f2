#include "server/secure_stream.hpp"

#include "tls/identity.hpp"
#include "tls/server_context.hpp"

namespace monolock::server {

core::receive_result secure_stream::receive(std::span<std::byte> into) noexcept {
    using enum core::receive_status;
    const tls::channel::result got = channel_.receive(into);
    receive_wants_write_ = got.outcome == tls::status::wants_write;
    switch (got.outcome) {
        case tls::status::ok:
            return {.status = bytes, .count = got.count};
        case tls::status::wants_read:
        case tls::status::wants_write:
            return {.status = nothing};
        case tls::status::peer_closed:
        case tls::status::alerted:
        case tls::status::silence:
        case tls::status::failed:
            break;
    }
    return {.status = ended_by_peer(got.outcome) ? peer_closed : silence};
}

core::send_result secure_stream::send(std::span<const std::byte> bytes) noexcept {
    using enum core::send_status;
    const tls::channel::result did = channel_.send(bytes);
    send_wants_read_ = did.outcome == tls::status::wants_read;
    switch (did.outcome) {
        case tls::status::ok:
            return {.status = sent, .count = did.count};
        case tls::status::wants_read:
        case tls::status::wants_write:
            return {.status = sent, .count = 0};
        case tls::status::peer_closed:
        case tls::status::alerted:
        case tls::status::silence:
        case tls::status::failed:
            break;
    }
    return {.status = ended_by_peer(did.outcome) ? peer_closed : silence};
}

bool secure_stream::ended_by_peer(tls::status end) noexcept {
    owes_alert_ = owes_alert_ || end == tls::status::failed;
    return end != tls::status::silence;
}

std::string secure_stream::identity() const {
    return tls::identity_of_peer(channel_);
}

bool secure_stream::is_accepted_by(const tls_setting& newest) {
    if (generation_ >= newest.generation) {
        return true;
    }
    if (!tls::still_trusts(newest.context, channel_)) {
        return false;
    }
    generation_ = newest.generation;
    return true;
}

}  // namespace monolock::server
