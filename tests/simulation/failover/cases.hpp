#pragma once

namespace monolock::simulation::failover {

// A visitor of a variant, put together from a function for each case.
template <typename... Cases>
struct cases : Cases... {
    using Cases::operator()...;
};
template <typename... Cases>
cases(Cases...) -> cases<Cases...>;

}  // namespace monolock::simulation::failover
