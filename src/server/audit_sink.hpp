#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace monolock::server {

// Where audit lines go, as the writer sees it. One thread.
class audit_sink {
public:
    // Bytes taken, or the errno that says why none was.
    struct outcome {
        std::size_t written = 0;
        int error = 0;
    };

    virtual ~audit_sink() = default;

    // One write of a text that is not empty.
    [[nodiscard]] virtual outcome write(std::string_view text) noexcept = 0;

    // The most to offer in one write. What is no longer than this is taken whole or not at all
    // where the sink can promise that (a pipe can, up to PIPE_BUF).
    [[nodiscard]] virtual std::size_t write_bytes_max() const noexcept = 0;

    // Removes the last `count` bytes that were written. False if it cannot: they stay.
    [[nodiscard]] virtual bool take_back(std::size_t count) noexcept = 0;

    // Whether it ends within a line now, as a crash may have left it. Asked before the first write.
    [[nodiscard]] virtual bool ends_within_line() const noexcept = 0;

    // After a refusal: waits until a write may do better, for so long at the most.
    virtual void wait(std::chrono::milliseconds time_max) noexcept = 0;
};

}  // namespace monolock::server
