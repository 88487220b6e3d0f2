#include "coordination/role.hpp"

namespace monolock::coordination {

std::string_view to_string(role one) noexcept {
    switch (one) {
        case role::standby:
            return "standby";
        case role::campaigning:
            return "campaigning";
        case role::waiting:
            return "waiting";
        case role::active:
            return "active";
        case role::stepping_down:
            return "stepping down";
        case role::resigning:
            return "resigning";
        case role::retired:
            return "retired";
    }
    return "?";
}

std::string_view to_string(loss why) noexcept {
    switch (why) {
        case loss::mandate_over:
            return "no renewal was answered in time";
        case loss::key_taken:
            return "another server has the key";
        case loss::key_gone:
            return "the key is gone";
        case loss::lease_gone:
            return "the lease has ended";
        case loss::shut_down:
            return "it was shut down";
    }
    return "?";
}

}  // namespace monolock::coordination
