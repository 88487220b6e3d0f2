#include "client/failure.hpp"

#include <array>

namespace monolock::detail {

namespace {

std::string describe(violation what) {
    switch (what) {
        case violation::none:
            break;
        case violation::unsolicited_answer:
            return "an answer came with nothing in flight";
        case violation::waiting_after_acquired:
            return "WAITING came after ACQUIRED";
        case violation::zero_token:
            return "a grant came with token 0";
        case violation::changed_token:
            return "the token of the grant changed";
        case violation::unknown_type:
            return "a byte came that starts no frame (is this a monolock server?)";
        case violation::tls_alert:
            return "a TLS alert came: the server speaks TLS on this port, and the client does not";
    }
    return {};
}

std::error_code server_error_code(protocol::error_code code) {
    constexpr int server_code_base = 0x100;
    return make_error_code(static_cast<errc>(server_code_base + static_cast<int>(code)));
}

}  // namespace

void raise(const failure& why) {
    if (wire_code(why.code)) {
        throw server_error{why.code, why.at, why.detail};
    }
    throw error{why.code, why.at, why.detail};
}

failure to_failure(const claim_loss& loss, stage at, bool admitted) {
    failure result{.code = {}, .at = at, .detail = {}, .admitted = admitted};
    switch (loss.kind) {
        case loss_kind::acquire_timeout:
            result.code = make_error_code(errc::acquire_timeout);
            break;
        case loss_kind::heartbeat_timeout:
            result.code = make_error_code(errc::heartbeat_timeout);
            break;
        case loss_kind::connection_closed:
            result.code = make_error_code(errc::connection_closed);
            break;
        case loss_kind::protocol_violation:
            result.code = make_error_code(errc::protocol_violation);
            result.detail = describe(loss.what);
            break;
        case loss_kind::server_error:
            result.code = server_error_code(loss.code);
            result.detail = loss.reason;
            break;
    }
    return result;
}

}  // namespace monolock::detail
