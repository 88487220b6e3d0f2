#include "client/dial.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace monolock::detail {

namespace {

std::error_code prepare_dialed(int fd) noexcept {
    const int status = ::fcntl(fd, F_GETFL);
    if (status < 0 || ::fcntl(fd, F_SETFL, status | O_NONBLOCK) < 0 ||
        ::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return {errno, std::system_category()};
    }
    const int on = 1;  // refused by what is not TCP, and not needed there
    static_cast<void>(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    return {};
}

}  // namespace

dial_result dial(const target& to, const place& where, std::stop_token stop) noexcept {
    dial_result result;
    result.why.code = make_error_code(errc::dialer_failed);
    try {
        result.connected = posix::descriptor{to.options.dialer(where.text, std::move(stop))};
    } catch (const std::system_error& failed) {
        result.why = {.code = failed.code(), .at = {}, .detail = "dialer", .admitted = false};
    } catch (const std::exception& failed) {
        result.why.detail = failed.what();
    } catch (...) {
    }
    if (result.connected) {
        const auto refused = prepare_dialed(result.connected.get());
        if (refused) {
            static_cast<void>(result.connected.release());  // not a descriptor, or not ours to use
            result.why.detail = refused.message();
        }
    }
    return result;
}

}  // namespace monolock::detail
