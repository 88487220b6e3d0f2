#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/audit_entry.hpp"
#include "server/audit_sink.hpp"

namespace monolock::server {

// Turns batches into lines and gets them into a sink: each line once, in order, and whole. No
// thread and no clock: the audit log's thread calls it.
//
// Invariants:
//  1. text_ holds whole lines. What is before written_ is in the sink.
//  2. If written_ is within a line, the sink ends with the beginning of that line, and the next
//     bytes it gets are the rest of it.
class audit_writer {
public:
    explicit audit_writer(std::unique_ptr<audit_sink> to);

    // Nothing is left to be written.
    [[nodiscard]] bool idle() const noexcept { return written_ == text_.size(); }

    // Only when idle.
    void add(const audit_batch& batch);

    // Writes until all is out, which is 0, or the sink refuses, which is its errno. After a refusal
    // the sink does not end within a line if it can take bytes back.
    [[nodiscard]] int write();

    // Goes on in another sink. A line that the old one holds a part of, and did not take the rest
    // of, is written to the new one in full.
    void switch_to(std::unique_ptr<audit_sink> to);

    [[nodiscard]] audit_sink& sink() noexcept { return *sink_; }

    // Lines not written in full, gaps among them.
    [[nodiscard]] std::size_t lines_left() const noexcept;

private:
    [[nodiscard]] std::size_t line_begin() const noexcept;
    [[nodiscard]] std::size_t next_piece() const noexcept;

    std::unique_ptr<audit_sink> sink_;
    std::string text_;
    std::size_t written_ = 0;
    // What a crash left of a line stays where it is, as a line that says nothing.
    bool owes_newline_;
};

}  // namespace monolock::server
