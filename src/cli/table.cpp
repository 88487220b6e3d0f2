#include "cli/table.hpp"

#include <algorithm>
#include <cstddef>

#include "cli/display_width.hpp"

namespace monolock::cli {

namespace {

void append_painted(std::string& out, const table::cell& what, bool coloured) {
    out += coloured ? begin_of(what.paint) : "";
    out += what.text;
    out += coloured ? end_of(what.paint) : "";
}

}  // namespace

std::string table::text(bool coloured) const {
    std::vector<row> lines;
    lines.reserve(rows_.size() + 1);
    row& headings = lines.emplace_back();
    for (const column& each : columns_) {
        headings.emplace_back(std::string{each.heading}, colour::bold);
    }
    lines.insert(lines.end(), rows_.begin(), rows_.end());

    std::vector<std::size_t> widths(columns_.size());
    for (const row& line : lines) {
        for (std::size_t at = 0; at < widths.size(); ++at) {
            widths[at] = std::max(widths[at], display_width(line[at].text));
        }
    }
    std::string out;
    for (const row& line : lines) {
        for (std::size_t at = 0; at < widths.size(); ++at) {
            const std::string padding(widths[at] - display_width(line[at].text), ' ');
            const bool left = columns_[at].side == align::left;
            out += at == 0 ? "" : "  ";
            out += left ? "" : padding;
            append_painted(out, line[at], coloured);
            out += left && at + 1 < widths.size() ? padding : "";
        }
        out += '\n';
    }
    return out;
}

}  // namespace monolock::cli
