#include "client/miss.hpp"

#include <algorithm>
#include <utility>

#include "protocol/error_code.hpp"

namespace monolock::detail {

namespace {

bool is_any_of(const failure& why, std::initializer_list<errc> set) noexcept {
    return std::any_of(set.begin(), set.end(),
                       [&why](errc code) { return why.code == make_error_code(code); });
}

// The larger, the more it tells.
int weight(const miss& each) noexcept {
    if (is_permanent(each.why)) {
        return 2;
    }
    return wire_code(each.why.code) ? 0 : 1;
}

}  // namespace

bool may_move_on(const failure& why) noexcept {
    if (why.admitted) {
        return false;
    }
    if (const auto code = wire_code(why.code)) {
        return *code < protocol::client_error_min;
    }
    return !is_any_of(why, {errc::acquire_timeout, errc::certificate_refused,
                            errc::protocol_violation, errc::thread_unavailable});
}

bool is_permanent(const failure& why) noexcept {
    return is_any_of(why, {errc::server_not_trusted, errc::certificate_refused, errc::tls_failed});
}

void name_address(failure& why, const std::string& address) {
    if (!wire_code(why.code)) {
        why.detail = why.detail.empty() ? address : address + ": " + why.detail;
    }
}

failure sum_up(std::vector<miss> all) {
    const auto chosen = std::max_element(
        all.begin(), all.end(),
        [](const miss& left, const miss& right) { return weight(left) < weight(right); });
    failure result = std::move(chosen->why);
    if (all.size() == 1) {
        return result;
    }
    name_address(result, chosen->address);
    if (wire_code(result.code)) {
        return result;
    }
    std::string others;
    for (const miss& other : all) {
        if (&other != &*chosen) {
            others += other.address + ": " + other.why.code.message();
            others += other.why.detail.empty() ? "" : ", " + other.why.detail;
            others += "; ";
        }
    }
    result.detail.insert(0, others);
    return result;
}

}  // namespace monolock::detail
