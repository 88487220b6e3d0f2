#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace monolock::test {

// A folder of files that goes with the test.
class pem_folder {
public:
    pem_folder() {
        std::string name = std::filesystem::temp_directory_path() / "monolock-pem-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error{"no temporary folder"};
        }
        path_ = name;
    }
    pem_folder(const pem_folder&) = delete;
    pem_folder& operator=(const pem_folder&) = delete;
    ~pem_folder() { std::filesystem::remove_all(path_); }

    [[nodiscard]] std::string path(const std::string& name) const { return path_ / name; }
    // The path. A file of that name is replaced at once, as a rotation should do it.
    std::string write(const std::string& name, const std::string& text) const {
        const std::filesystem::path fresh = path_ / (name + ".new");
        std::ofstream{fresh} << text;
        std::filesystem::rename(fresh, path_ / name);
        return path(name);
    }

private:
    std::filesystem::path path_;
};

}  // namespace monolock::test
