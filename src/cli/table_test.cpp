#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace monolock::cli {
namespace {

using namespace std::string_literals;

table two_columns() {
    return table{{{.heading = "NAME"}, {.heading = "AGE", .side = table::align::right}}};
}

TEST(table, columns_line_up_and_no_line_ends_in_blanks) {
    table rows{{{.heading = "A"},
                {.heading = "NUMBER", .side = table::align::right},
                {.heading = "LAST"}}};
    rows.add({"longer"s, "7"s, "x"s});
    rows.add({"b"s, "1234567"s, "longest"s});
    EXPECT_EQ(rows.text(false),
              "A        NUMBER  LAST\n"
              "longer        7  x\n"
              "b       1234567  longest\n");
}

TEST(table, wide_characters_count_as_what_they_take) {
    table rows = two_columns();
    rows.add({"日本"s, "1s"s});
    rows.add({"üb"s, "10s"s});
    EXPECT_EQ(rows.text(false),
              "NAME  AGE\n"
              "日本   1s\n"
              "üb    10s\n");
}

TEST(table, colour_changes_no_width) {
    table rows = two_columns();
    rows.add({"a"s, {"9s"s, colour::red}});
    EXPECT_EQ(rows.text(true),
              "\x1b[1mNAME\x1b[0m  \x1b[1mAGE\x1b[0m\n"
              "a      \x1b[31m9s\x1b[0m\n");
    EXPECT_EQ(rows.text(false).find('\x1b'), std::string::npos);
}

TEST(table, without_rows_there_are_the_headings) {
    EXPECT_EQ(two_columns().text(false), "NAME  AGE\n");
}

}  // namespace
}  // namespace monolock::cli
