#pragma once

#include <sys/types.h>

#include <optional>

namespace monolock::cli {

// Makes the calling process the one to which orphans among its descendants fall, so that none gets
// out of sight (PR_SET_CHILD_SUBREAPER).
void become_subreaper() noexcept;

// Remembers the children that the calling process has already: a program that called exec may have
// left it some. They are nobody's job and are not killed.
void spare_present_children();
// In a process forked from it, whose children they are not: their numbers may become those of its
// own.
void forget_spared_children() noexcept;

// Kills the process group (0: none, and none in which there is no child of the calling process: its
// number may be another's by now) and every descendant of the calling process, those that left
// the group too, and reaps until none is left. SIGCHLD must be blocked. Returns only then: a
// process stuck in the kernel, or one that runs under another user's rights, is waited for, and so
// is one that left the group if /proc does not show it. (Unless there are spared children, which it
// could not be told from.)
void kill_descendants(pid_t group) noexcept;

// The command, its process group, and whatever descends from it. One thread; a subreaper.
class job {
public:
    explicit job(pid_t command) noexcept : command_{command} {}

    // To the command alone; nothing once it has been reaped, since its number may be another's
    // then.
    void signal_command(int number) const noexcept;
    // To the whole group; nothing once its number may be another's.
    void signal_group(int number) const noexcept;
    // Whether it may not: the command or another child in its group has not been reaped yet.
    [[nodiscard]] bool has_group() const noexcept;

    // What became of the command since the last call. Orphans that ended are reaped on the way.
    struct news {
        std::optional<int> stopped_by;
        bool continued = false;
    };
    [[nodiscard]] news reap() noexcept;

    // Its wait status, once it has ended.
    [[nodiscard]] std::optional<int> status() const noexcept { return status_; }
    // Whether neither the command nor any other descendant is left, as of the last reap.
    [[nodiscard]] bool empty() const noexcept { return empty_; }

    // Kills and reaps everything; empty() afterwards.
    void kill_all() noexcept;

private:
    pid_t command_;
    std::optional<int> status_;
    bool empty_ = false;
};

}  // namespace monolock::cli
