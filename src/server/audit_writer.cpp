#include "server/audit_writer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/assert.hpp"

namespace monolock::server {

audit_writer::audit_writer(std::unique_ptr<audit_sink> to)
    : sink_{std::move(to)}, owes_newline_{sink_->ends_within_line()} {}

void audit_writer::add(const audit_batch& batch) {
    MONOLOCK_ASSERT(idle());
    text_.clear();
    written_ = 0;
    for (std::size_t offset = 0; offset < batch.bytes();) {
        append_line(text_, batch.read(offset));
    }
}

int audit_writer::write() {
    while (!idle()) {
        if (owes_newline_) {
            if (const auto did = sink_->write("\n"); did.error != 0) {
                return did.error;
            }
            owes_newline_ = false;
        }
        const auto did = sink_->write(std::string_view{text_}.substr(written_, next_piece()));
        written_ += did.written;
        if (did.error != 0) {
            const std::size_t begin = line_begin();
            if (begin < written_ && sink_->take_back(written_ - begin)) {
                written_ = begin;
            }
            return did.error;
        }
    }
    return 0;
}

void audit_writer::switch_to(std::unique_ptr<audit_sink> to) {
    written_ = line_begin();
    sink_ = std::move(to);
    owes_newline_ = sink_->ends_within_line();
}

std::size_t audit_writer::lines_left() const noexcept {
    return static_cast<std::size_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(written_), text_.end(), '\n'));
}

// Where the line begins that written_ is within; written_ itself if it is within none.
std::size_t audit_writer::line_begin() const noexcept {
    return written_ == 0 ? 0 : text_.rfind('\n', written_ - 1) + 1;
}

// As many whole lines as fit into one write; a line that is too long for it goes alone. (So do the
// last bytes of one that was begun.)
std::size_t audit_writer::next_piece() const noexcept {
    const std::size_t rest = text_.size() - written_;
    const std::size_t most = sink_->write_bytes_max();
    if (rest <= most) {
        return rest;
    }
    const std::size_t last = text_.rfind('\n', written_ + most - 1);
    if (last != std::string::npos && last >= written_) {
        return last + 1 - written_;
    }
    return text_.find('\n', written_) + 1 - written_;
}

}  // namespace monolock::server
