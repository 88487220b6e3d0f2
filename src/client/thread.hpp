#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

namespace monolock::detail {

// Starts a joinable thread of the library. All signals are blocked in it: an application's handlers
// run on the application's threads. Nothing if the system gives no thread. What leaves `job` as an
// exception ends the program. (Not std::thread: its destructor would end a forked child, in which
// the thread does not exist and can be neither joined nor detached.)
[[nodiscard]] std::optional<pthread_t> start_thread(std::function<void()> job);

// The same, detached: for what cannot be interrupted (the resolver, a dialer). False if the system
// gives no thread.
[[nodiscard]] bool start_detached_thread(std::function<void()> job);

}  // namespace monolock::detail
