#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/scratch_folder.hpp"

namespace monolock::test {

struct etcd_wishes {
    std::vector<std::string> flags{};  // besides those of addresses and data
    std::size_t members = 1;
    std::string scheme = "http";  // of the clients' addresses
};

// Members of etcd on the loopback interface, started for a test and killed at its end. They run
// without fsync, and elect within a tenth of a second.
class etcd_process {
public:
    [[nodiscard]] static bool is_installed();

    // Returns when all are well. Throws std::runtime_error with the end of etcd's log.
    explicit etcd_process(etcd_wishes wishes = {});
    etcd_process(const etcd_process&) = delete;
    etcd_process& operator=(const etcd_process&) = delete;
    ~etcd_process();

    // For clients.
    [[nodiscard]] std::uint16_t port(std::size_t which = 0) const;
    void kill(std::size_t which);
    // One that was killed, with its data. Returns when all are well.
    void start_again(std::size_t which);

    // What an operator asks over plain HTTP: the answer's body. Another status than 200 throws
    // std::runtime_error.
    [[nodiscard]] std::string post(const std::string& path, const std::string& body) const;
    // With this in every later one.
    void use_token(std::string token) { token_ = std::move(token); }

private:
    struct member {
        pid_t pid = 0;
        std::uint16_t client = 0;
        std::uint16_t peer = 0;
        std::uint16_t health = 0;
    };

    void start();
    void stop() noexcept;
    [[nodiscard]] bool all_become_well() const;
    [[nodiscard]] std::vector<std::string> arguments(std::size_t index) const;
    [[nodiscard]] std::string end_of_log() const;

    etcd_wishes wishes_;
    scratch_folder folder_;
    std::vector<member> members_;
    std::string token_;
};

}  // namespace monolock::test
