#include "cli/admin/admin_command.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/admin/admin_api.hpp"
#include "cli/admin/admin_arguments.hpp"
#include "cli/admin/lock_text.hpp"
#include "cli/admin/question.hpp"
#include "cli/admin/report.hpp"
#include "cli/admin/watch.hpp"
#include "cli/colour.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"

namespace monolock::cli {

namespace {

// --- asking

// Whoever pipes something in, or has no terminal, is a program and knows what it wants.
bool is_to_be_asked(bool yes) noexcept {
    return !yes && can_ask();
}

// Throws unless the answer is yes.
void confirm() {
    if (!ask_on_terminal("End this claim?")) {
        throw admin_error{exit_code::declined, "nobody was ended"};
    }
}

// --- errors in words that say which lock

std::string lock_called(std::string_view name) {
    return "lock " + word(name);
}

std::string another_owner(std::string_view name, const std::optional<holder_facts>& holder) {
    return lock_called(name) + ": nobody was ended, because " +
           (holder ? "somebody else owns it: " + describe(*holder) : "it has no owner");
}

// --- the commands

int run(const locks_options& told, admin_channel& channel) {
    const json listing = admin_api{channel}.locks(told.match);
    if (told.json) {
        return print_result(to_line(listing));
    }
    const std::vector<lock_facts> locks = locks_from(listing);
    if (locks.empty()) {
        return print_result(no_locks_text(told.match));
    }
    return print_result(locks_text(locks, is_standard_output_coloured()));
}

int run(const show_options& told, admin_channel& channel) {
    admin_api api{channel};
    const json lock = api.show(told.name);
    return print_result(told.json ? to_line(lock)
                                  : lock_text(lock_from(lock), is_standard_output_coloured()));
}

// Shows whom a release would end, and asks; the token that makes sure it ends nobody else. If it is
// known already that it will end nobody, the server is left to say why.
std::optional<std::uint64_t> confirm_release(const release_options& told, admin_api& api) {
    const lock_facts lock = lock_from(api.show(told.name));
    if (!lock.holder || (told.token && *told.token != lock.holder->token)) {
        return told.token;
    }
    say_on_terminal(lock_called(told.name) + " is held by " + describe(*lock.holder) + "\n" +
                    count_waiters(lock.waiters_total) + "\n");
    confirm();
    return lock.holder->token;
}

int run(const release_options& told, admin_channel& channel) {
    admin_api api{channel};
    const auto token = is_to_be_asked(told.yes) ? confirm_release(told, api) : told.token;
    const json ended = api.release(told.name, token);
    return print_result(told.json ? to_line(ended)
                                  : "released " + word(told.name) + ", held by " +
                                        describe(holder_from(ended)) + "\n");
}

// Shows whom a kick would end; its id, which no other claim ever has.
std::string confirm_kick(const kick_options& told, admin_api& api) {
    const lock_facts lock = lock_from(api.show(told.name));
    const auto is_meant = [&](const waiter_facts& each) {
        return each.remote_addr == told.who || std::to_string(each.id) == told.who;
    };
    const auto found = std::ranges::find_if(lock.waiters, is_meant);
    if (found == lock.waiters.end() || std::any_of(found + 1, lock.waiters.end(), is_meant)) {
        return told.who;  // the server is left to say why it will end nobody
    }
    const auto place = found - lock.waiters.begin() + 1;
    say_on_terminal(describe(*found) + ", waits for " + lock_called(told.name) + " in place " +
                    std::to_string(place) + " of " + std::to_string(lock.waiters_total) + "\n");
    confirm();
    return std::to_string(found->id);
}

int run(const kick_options& told, admin_channel& channel) {
    admin_api api{channel};
    const json ended =
        api.kick(told.name, is_to_be_asked(told.yes) ? confirm_kick(told, api) : told.who);
    return print_result(told.json ? to_line(ended)
                                  : "kicked " + describe(waiter_from(ended)) + ", from " +
                                        lock_called(told.name) + "\n");
}

int run(const info_options& told, admin_channel& channel) {
    const json info = admin_api{channel}.info();
    return print_result(told.json ? to_line(info) : info_text(info));
}

// --- what goes wrong

// Whom a conflict names; nobody, if it is not understood.
std::optional<holder_facts> holder_in(const json& conflict) {
    const auto holder = conflict.find("holder");
    if (holder == conflict.end() || !holder->is_object()) {
        return std::nullopt;
    }
    try {
        return holder_from(*holder);
    } catch (const bad_answer&) {
        return std::nullopt;
    }
}

std::string sentence(const locks_options& /*told*/, const refusal& no) {
    return no.what();
}
std::string sentence(const info_options& /*told*/, const refusal& no) {
    return no.what();
}
std::string about_lock(std::string_view name, const refusal& no) {
    return no.status() == exit_code::not_there
               ? "there is no " + lock_called(name) + ": nobody owns it"
               : lock_called(name) + ": " + no.what();
}
std::string sentence(const show_options& told, const refusal& no) {
    return about_lock(told.name, no);
}
std::string sentence(const release_options& told, const refusal& no) {
    return no.status() == exit_code::conflict ? another_owner(told.name, holder_in(no.document()))
                                              : about_lock(told.name, no);
}
std::string sentence(const kick_options& told, const refusal& no) {
    return lock_called(told.name) + ", waiter " + word(told.who) + ": " + no.what();
}

template <class Options>
int perform(const Options& told) {
    try {
        admin_channel channel{told.admin};
        return run(told, channel);
    } catch (const refusal& no) {
        return report_failure(told.json, no.status(), sentence(told, no), no.document());
    } catch (const bad_answer& failed) {
        const std::string text = word(told.admin) + ": " + failed.what();
        return report_failure(told.json, failed.status(), text, error_document(text));
    } catch (const admin_error& failed) {
        return report_failure(told.json, failed.status(), failed.what(),
                              error_document(failed.what()));
    }
}

struct performer {
    int operator()(const locks_options& told) const {
        return told.watch ? run_watch(told) : perform(told);
    }
    template <class Options>
    int operator()(const Options& told) const {
        return perform(told);
    }
    int operator()(const help& text) const { return print_result(text.text); }
    int operator()(const config::diagnostic& wrong) const {
        complain(wrong.text + " (monolockctl help " + verb + ")");
        return to_int(exit_code::usage);
    }

    std::string verb;
};

}  // namespace

int run_admin(std::span<const char* const> words, const config::environment& variables) {
    return std::visit(performer{words.front()}, parse_admin_arguments(words, variables));
}

}  // namespace monolock::cli
