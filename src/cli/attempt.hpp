#pragma once

#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include <monolock/client.hpp>

#include "cli/arguments.hpp"
#include "posix/descriptor.hpp"

namespace monolock::cli {

// The acquisition of the lock on a thread of its own, so that the guardian can listen meanwhile.
class attempt {
public:
    // Starts. Both arguments must outlive it. Throws std::system_error.
    attempt(client& through, const run_options& options);
    // Stops it and waits for that, 50 ms at most.
    ~attempt();
    attempt(const attempt&) = delete;
    attempt& operator=(const attempt&) = delete;

    // Readable once the outcome is there.
    [[nodiscard]] int descriptor() const noexcept { return done_.get(); }
    // Asks it to end. It may still end with a lock.
    void stop() noexcept { stop_.request_stop(); }

    // With a lock: granted. With neither lock nor failure: somebody else owns it (one try).
    struct outcome {
        lock held;
        std::error_code failure;
        std::string detail;  // which server, and why; in words, escaped
    };
    // Once, after the descriptor became readable.
    [[nodiscard]] outcome take();

private:
    void run(client& through, const run_options& options) noexcept;

    posix::descriptor done_;
    std::stop_source stop_;
    outcome outcome_;
    std::thread thread_;  // last: it uses all the others
};

}  // namespace monolock::cli
