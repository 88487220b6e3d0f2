#include "cli/admin/question.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monolock::cli {
namespace {

TEST(question, a_yes_is_nothing_but_a_yes) {
    for (const char* const line : {"y", "Y", "yes", "YES", "Yes", "yEs", "  y", "\tyes  ", "y\r"}) {
        EXPECT_TRUE(is_yes(line)) << line;
    }
    for (const std::string& line :
         {std::string{""}, std::string{" "}, std::string{"n"}, std::string{"no"}, std::string{"yo"},
          std::string{"ye"}, std::string{"yess"}, std::string{"y y"}, std::string{"y e s"},
          std::string{"you sure?"}, std::string{"yes but wait"}, std::string{"y\0", 2},
          // An answer that is long is read to its end.
          "y" + std::string(300, ' ') + "no", std::string(300, 'y')}) {
        EXPECT_FALSE(is_yes(line)) << line;
    }
}

}  // namespace
}  // namespace monolock::cli
