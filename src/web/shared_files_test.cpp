#include "web/shared_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace monolock::web {
namespace {

TEST(shared_files, are_the_files_of_the_source) {
    ASSERT_EQ(shared_files().size(), 3U);
    EXPECT_EQ(shared_files()[0].name, "names.js");
    EXPECT_EQ(shared_files()[1].name, "timeline.js");
    EXPECT_EQ(shared_files()[2].name, "timeline.css");
    for (const embedded_file& each : shared_files()) {
        std::ifstream file{std::filesystem::path{MONOLOCK_WEB_SOURCE} / each.name,
                           std::ios::binary};
        ASSERT_TRUE(file) << each.name;
        const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
        EXPECT_FALSE(bytes.empty());
        EXPECT_EQ(each.bytes, bytes) << each.name;
        EXPECT_EQ(each.bytes.data()[each.bytes.size()], '\0');
    }
}

}  // namespace
}  // namespace monolock::web
