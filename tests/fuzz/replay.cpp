// fuzz_replay TARGET PATH…: runs each file, and each file of each folder, through a fuzz target. A
// corpus is so a regression test that needs neither clang nor libFuzzer. What a target finds wrong
// ends the process; the file is named before.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string_view>
#include <vector>

#define MONOLOCK_FUZZER(name) extern "C" int name(const std::uint8_t* data, std::size_t size);
#include "fuzzers.inc"
#undef MONOLOCK_FUZZER

namespace {

struct fuzzer {
    std::string_view name;
    int (*run)(const std::uint8_t* data, std::size_t size);
};

constexpr std::array fuzzers{
#define MONOLOCK_FUZZER(name) fuzzer{#name, name},
#include "fuzzers.inc"
#undef MONOLOCK_FUZZER
};

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) {
        return {path};
    }
    std::vector<std::filesystem::path> files;
    for (const auto& each : std::filesystem::directory_iterator{path}) {
        files.push_back(each.path());
    }
    std::ranges::sort(files);
    return files;
}

// On the heap and of exactly that size, so that a sanitizer sees what reads beyond it.
std::vector<std::uint8_t> content_of(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    std::vector<std::uint8_t> content{std::istreambuf_iterator<char>{file}, {}};
    if (!file) {
        std::cerr << path << ": cannot be read\n";
        std::exit(1);
    }
    content.shrink_to_fit();
    return content;
}

}  // namespace

int main(int count, char** words) {
    const auto* const found =
        count < 3 ? fuzzers.end() : std::ranges::find(fuzzers, words[1], &fuzzer::name);
    if (found == fuzzers.end()) {
        std::cerr << "usage: fuzz_replay TARGET PATH...\n";
        return 2;
    }
    std::size_t inputs = 0;
    for (int at = 2; at < count; ++at) {
        for (const auto& file : files_of(words[at])) {
            const std::vector<std::uint8_t> content = content_of(file);
            std::cerr << file.filename().string() << '\r' << std::flush;
            found->run(content.data(), content.size());
            ++inputs;
        }
    }
    std::cerr << found->name << ": " << inputs << " inputs\n";
    return inputs == 0 ? 1 : 0;  // a corpus that is not there is no proof
}
