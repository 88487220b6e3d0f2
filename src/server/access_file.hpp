#pragma once

#include <functional>
#include <string>

#include "config/access_rules.hpp"
#include "config/parsed.hpp"
#include "server/access_policy.hpp"

namespace monolock::server {

// Reads and checks the file of rules; or says everything that is wrong.
[[nodiscard]] config::checked<config::access_rules> load_access_rules(const std::string& path);

// The file of rules of a running server, and what it said when it was last valid. Used by the
// control loop's thread alone.
class access_file {
public:
    // Throws std::runtime_error, which says everything that is wrong in one line, if the file is
    // not valid.
    explicit access_file(std::string path);

    [[nodiscard]] const access_policy& policy() const noexcept { return policy_; }

    // Reads the file again. If it is valid and says something else than before, that is the policy
    // from now on, of the next generation, and adopt() is called with it. Returns what is in force,
    // for people, or everything that is wrong with the file.
    [[nodiscard]] config::checked<std::string> read_again(
        const std::function<void(const access_policy&)>& adopt);

private:
    std::string path_;
    access_policy policy_;
};

}  // namespace monolock::server
