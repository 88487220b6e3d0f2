#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "history/event.hpp"
#include "posix/descriptor.hpp"

namespace monolock::faults {

// The history of one process, written as it happens: each event is one write, so that a process
// that is killed leaves whole lines, but for the last. Any thread.
class recorder {
public:
    // Throws std::system_error if the file cannot be opened.
    recorder(const std::string& path, std::uint32_t worker);

    // Now, on the clock of all histories.
    [[nodiscard]] static history::instant now() noexcept;

    // Writes it down with the worker, and the time if it has none. A history that cannot be written
    // ends the process: it would prove nothing.
    void note(history::event what, std::string_view lock_name = {}) const;

private:
    posix::descriptor file_;
    std::uint32_t worker_;
};

}  // namespace monolock::faults
