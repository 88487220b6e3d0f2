#pragma once

#include <sys/epoll.h>

#include <span>

// The kernel's own calls, for the network, where the linker would lead to the network again.
namespace monolock::bench::in_memory::system {

int epoll_control(int epoll, int operation, int descriptor, epoll_event* what);
int epoll_wait(int epoll, std::span<epoll_event> into, int timeout_ms);

}  // namespace monolock::bench::in_memory::system
