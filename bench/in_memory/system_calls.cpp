// Linked with --wrap (CMakeLists.txt): whoever in this program calls recv gets __wrap_recv, and
// __real_recv is the library's. So the server's code is measured as it is, and knows nothing of it.

#include "in_memory/system_calls.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

#include "in_memory/network.hpp"

namespace {

using monolock::bench::in_memory::network;

// The network, if the descriptor is one of its connections.
network* network_of(int descriptor) noexcept {
    return descriptor >= network::first_descriptor ? network::running() : nullptr;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker chooses these
// names
extern "C" {

int __real_accept4(int listener, sockaddr* from, socklen_t* size, int flags);
ssize_t __real_recv(int descriptor, void* into, std::size_t size, int flags);
ssize_t __real_send(int descriptor, const void* bytes, std::size_t size, int flags);
int __real_shutdown(int descriptor, int how);
int __real_setsockopt(int descriptor, int level, int name, const void* value, socklen_t size);
int __real_close(int descriptor);
int __real_epoll_ctl(int epoll, int operation, int descriptor, epoll_event* what);
int __real_epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms);

int __wrap_accept4(int listener, sockaddr* from, socklen_t* size, int flags) {
    network* const net = network::running();
    return net != nullptr && net->is_listening(listener)
               ? net->accept(from, size)
               : __real_accept4(listener, from, size, flags);
}

ssize_t __wrap_recv(int descriptor, void* into, std::size_t size, int flags) {
    network* const net = network_of(descriptor);
    return net != nullptr ? net->receive(descriptor, {static_cast<std::byte*>(into), size}, flags)
                          : __real_recv(descriptor, into, size, flags);
}

ssize_t __wrap_send(int descriptor, const void* bytes, std::size_t size, int flags) {
    network* const net = network_of(descriptor);
    return net != nullptr ? net->send(descriptor, {static_cast<const std::byte*>(bytes), size})
                          : __real_send(descriptor, bytes, size, flags);
}

int __wrap_shutdown(int descriptor, int how) {
    network* const net = network_of(descriptor);
    return net != nullptr ? net->shut_down(descriptor) : __real_shutdown(descriptor, how);
}

int __wrap_setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) {
    return network_of(descriptor) != nullptr
               ? 0
               : __real_setsockopt(descriptor, level, name, value, size);
}

int __wrap_close(int descriptor) {
    network* const net = network_of(descriptor);
    return net != nullptr ? net->close(descriptor) : __real_close(descriptor);
}

int __wrap_epoll_ctl(int epoll, int operation, int descriptor, epoll_event* what) {
    network* const net = network_of(descriptor);
    return net != nullptr ? net->control(epoll, operation, descriptor, what)
                          : __real_epoll_ctl(epoll, operation, descriptor, what);
}

int __wrap_epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
    network* const net = network::running();
    return net != nullptr ? net->wait(epoll, {events, static_cast<std::size_t>(count)}, timeout_ms)
                          : __real_epoll_wait(epoll, events, count, timeout_ms);
}

}  // extern "C"

namespace monolock::bench::in_memory::system {

int epoll_control(int epoll, int operation, int descriptor, epoll_event* what) {
    return __real_epoll_ctl(epoll, operation, descriptor, what);
}

int epoll_wait(int epoll, std::span<epoll_event> into, int timeout_ms) {
    return __real_epoll_wait(epoll, into.data(), static_cast<int>(into.size()), timeout_ms);
}

}  // namespace monolock::bench::in_memory::system
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
