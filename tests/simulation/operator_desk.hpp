#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/context.hpp"
#include "simulation/rules.hpp"
#include "simulation/server_process.hpp"

namespace monolock::simulation {

// Somebody at the admin API: lists the locks, and ends claims by what a listing said, which may be
// long ago and of a process that is no more. What is asked of a shard is posted to it, and given up
// if the shard does not begin with it in time. Modelled on src/server/admin.
class operator_desk {
public:
    operator_desk(context& world, rules& checks) noexcept : world_{&world}, rules_{&checks} {}

    void list(server_process& of);
    void release(server_process& of);
    void release_by_token(server_process& of);
    void kick(server_process& of);

private:
    struct survey;

    using finder = std::function<void(server_shard&)>;

    void ask(server_shard& of, finder find);
    void order(server_process& of, operator_order what);
    void carry_out(server_shard& of, const operator_order& what, core::name_hash hash);
    void end_owner(server_shard& of, const operator_order& what, core::name_hash hash);
    void end_waiter(server_shard& of, const operator_order& what, core::name_hash hash);
    void end(server_shard& of, const operator_order& what, operator_answer answer,
             core::connected_session& who);
    void slice(server_shard& of, const std::shared_ptr<survey>& by);
    [[nodiscard]] const listed_lock* draw_listed();

    context* world_;
    rules* rules_;
    std::vector<listed_lock> seen_;
};

}  // namespace monolock::simulation
