#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/colour.hpp"

namespace monolock::cli {

// Rows of cells under a heading, in columns that line up. Pure.
class table {
public:
    enum class align : std::uint8_t { left, right };

    struct column {
        std::string_view heading;
        align side = align::left;
    };

    struct cell {
        // NOLINTNEXTLINE(google-explicit-constructor): most cells are a text and nothing else
        cell(std::string what, colour how = colour::plain) : text{std::move(what)}, paint{how} {}

        std::string text;  // one line, escaped
        colour paint;
    };
    using row = std::vector<cell>;

    explicit table(std::vector<column> columns) : columns_{std::move(columns)} {}

    // As many cells as there are columns.
    void add(row cells) { rows_.push_back(std::move(cells)); }

    // A line for the headings and each row; two blanks between columns, none at the end of a line.
    [[nodiscard]] std::string text(bool coloured) const;

private:
    std::vector<column> columns_;
    std::vector<row> rows_;
};

}  // namespace monolock::cli
