#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <memory>

#include "client/reactor.hpp"
#include "client/routes.hpp"
#include "client/target.hpp"

namespace monolock::detail {

// The background thread of one client in one process, and what its claims share. Whoever needs the
// thread holds a shared_ptr: the client, its locks, a call that is under way. The last one ends and
// joins it, or leaves it to end by itself if the last one is a callback on that very thread. In a
// forked child, where the thread does not exist, ending the engine leaves everything as it is.
class engine {
public:
    // Throws monolock::error (thread_unavailable).
    explicit engine(const std::shared_ptr<const target>& to);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    [[nodiscard]] const std::shared_ptr<reactor>& loop() const noexcept { return loop_; }
    // Whether the calling thread is the background thread.
    [[nodiscard]] bool runs_here() const noexcept;
    [[nodiscard]] const std::shared_ptr<routes>& ways() const noexcept { return ways_; }

private:
    std::shared_ptr<reactor> loop_;
    std::shared_ptr<routes> ways_;
    pid_t process_;
    pthread_t thread_{};
};

}  // namespace monolock::detail
