#include "cli/link.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace monolock::cli {

namespace {

// Room for one descriptor, aligned as the kernel wants it.
struct control_buffer {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

msghdr header_of(iovec& data) noexcept {
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    return header;
}

}  // namespace

std::pair<link, link> link::make() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error{errno, std::system_category(), "socketpair"};
    }
    return {link{ends[0]}, link{ends[1]}};
}

bool link::send(message what, int descriptor) const noexcept {
    return send_with(MSG_DONTWAIT, what, descriptor);
}

bool link::send_last(message what) const noexcept {
    return send_with(0, what, -1);
}

bool link::send_with(int flags, message what, int descriptor) const noexcept {
    iovec data{.iov_base = &what, .iov_len = sizeof what};
    msghdr header = header_of(data);
    control_buffer control;
    if (descriptor >= 0) {
        header.msg_control = control.bytes.data();
        header.msg_controllen = control.bytes.size();
        cmsghdr* const part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    }
    ssize_t sent = 0;
    do {
        sent = sendmsg(fd_.get(), &header, MSG_NOSIGNAL | flags);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(sizeof what);
}

std::optional<link::received> link::receive() const noexcept {
    received out;
    iovec data{.iov_base = &out.what, .iov_len = sizeof out.what};
    msghdr header = header_of(data);
    control_buffer control;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    ssize_t size = 0;
    do {
        size = recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
        // The other end went with messages of ours unread: that is told first, and once. What it
        // sent before, and the end, come after.
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    if (size != static_cast<ssize_t>(sizeof out.what)) {
        return std::nullopt;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
            out.descriptor = posix::descriptor{descriptor};
        }
    }
    return out;
}

}  // namespace monolock::cli
