#pragma once

#include <optional>
#include <utility>

#include "posix/descriptor.hpp"

namespace monolock::cli {

// The line between wrapper and guardian: whole messages, in order, with end of file when the other
// process is gone, however it went.

enum class message_kind : int {
    // From the guardian.
    granted,   // with a duplicate of the claim's descriptor; it waits for `go`
    starting,  // the command gets a process next; from here on the deadline on the page holds
    started,   // the command has a process; value: which (and its group)
    stopped,   // the command was stopped; value: by which signal
    finished,  // nothing of the job is left and the lock is released; value: the exit status
    // From the wrapper.
    go,       // start the command; value: 1 to hand the terminal to it
    deliver,  // a signal for the command, or, before `go`, the end of the attempt; value: which
    resume,   // continue the command's group
};

struct message {
    message_kind kind{};
    int value = 0;
};

class link {
public:
    // The two ends: wrapper's, guardian's. Close-on-exec. Throws std::system_error.
    [[nodiscard]] static std::pair<link, link> make();

    link() noexcept = default;

    // Never waits: false if the other end is gone, or has read nothing for hundreds of messages (it
    // is stopped; then the deadlines of this end matter more than what the message says).
    bool send(message what, int descriptor = -1) const noexcept;
    // The same for the last message of all: waits for its place.
    bool send_last(message what) const noexcept;

    struct received {
        message what;
        posix::descriptor descriptor;
    };
    // Waits for the next message; nothing at the end of the line.
    [[nodiscard]] std::optional<received> receive() const noexcept;

    [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
    void close() noexcept { fd_.reset(); }

private:
    explicit link(int fd) noexcept : fd_{fd} {}

    [[nodiscard]] bool send_with(int flags, message what, int descriptor) const noexcept;

    posix::descriptor fd_;
};

}  // namespace monolock::cli
