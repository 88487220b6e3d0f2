#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/endpoint.hpp"
#include "client/wire.hpp"
#include "monolock/client.hpp"

namespace monolock::detail {

// One of the addresses of client_options.
struct place {
    std::string text;
    config::address where;
    std::optional<std::vector<endpoint>> endpoints;  // nothing: the host has to be resolved
    std::optional<security> secured;                 // nothing: plain
};

// client_options, checked and taken apart. Does not change once made.
struct target {
    // Throws monolock::error.
    explicit target(client_options given);

    [[nodiscard]] bool is_list() const noexcept { return places.size() > 1; }

    client_options options;
    std::vector<place> places;  // at least one; all of them secured or none
    std::optional<endpoint> local;
};

}  // namespace monolock::detail
