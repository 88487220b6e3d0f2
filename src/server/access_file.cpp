#include "server/access_file.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

#include "config/access_rules_json.hpp"
#include "posix/read_file.hpp"

namespace monolock::server {

config::checked<config::access_rules> load_access_rules(const std::string& path) {
    return config::parse_access_rules(path, posix::read_file(path, config::access_rules_bytes_max));
}

access_file::access_file(std::string path) : path_{std::move(path)} {
    auto rules = load_access_rules(path_);
    if (!rules) {
        throw std::runtime_error{config::joined(rules.error())};
    }
    policy_ = {.rules = std::make_shared<const config::access_rules>(*std::move(rules)),
               .generation = 1};
}

// The same rules again are not adopted: nobody would be sent away, and to find that out costs time.
config::checked<std::string> access_file::read_again(
    const std::function<void(const access_policy&)>& adopt) {
    auto rules = load_access_rules(path_);
    if (!rules) {
        return rules.error();
    }
    std::string text = describe(*rules);
    if (*rules == *policy_.rules) {
        return text + ", as before";
    }
    policy_ = {.rules = std::make_shared<const config::access_rules>(*std::move(rules)),
               .generation = policy_.generation + 1};
    adopt(policy_);
    return text;
}

}  // namespace monolock::server
