#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace monolock::test {

// A folder of files that goes with the test.
class scratch_folder {
public:
    scratch_folder() {
        std::string name = std::filesystem::temp_directory_path() / "monolock-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error{"no temporary folder"};
        }
        path_ = name;
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] std::string path() const { return path_; }
    [[nodiscard]] std::string path(const std::string& name) const { return path_ / name; }
    // The path. A file of that name is replaced at once, as a rotation should do it.
    std::string write(const std::string& name, const std::string& text) const {
        const std::filesystem::path fresh = path_ / (name + ".new");
        std::ofstream{fresh, std::ios::binary} << text;
        std::filesystem::rename(fresh, path_ / name);
        return path(name);
    }

private:
    std::filesystem::path path_;
};

}  // namespace monolock::test
