#include "simulation/failover/books.hpp"

#include <algorithm>

namespace monolock::simulation::failover {

using coordination::answer;
using coordination::campaign;
using coordination::campaigned;
using coordination::keep_lease_alive;
using coordination::lease_granted;
using coordination::lease_id;
using coordination::renew;
using coordination::renewed;
using coordination::request;
using coordination::resign;
using coordination::revoke_lease;
using coordination::state_record;
using coordination::ticket;

namespace {

constexpr std::size_t requests_max = 80;  // in each TTL

std::string number(std::int64_t value) {
    return std::to_string(value);
}

bool in_chain(const request& what) {
    return std::holds_alternative<campaign>(what) || std::holds_alternative<renew>(what) ||
           std::holds_alternative<resign>(what);
}

nanoseconds mandate(milliseconds ttl) {
    return nanoseconds{ttl} * 4 / 5;
}

}  // namespace

books::books(context& world, const store& truth,
             const std::vector<std::unique_ptr<client>>& clients)
    : world_{&world},
      truth_{&truth},
      clients_{&clients},
      processes_(static_cast<std::size_t>(world.plan.servers)) {}

// ---- a server and the store

void books::process_starts(int server, seconds ttl) {
    of(server) = process{};
    of(server).asked = ttl;
}

void books::requests(int server, ticket is, const request& what, nanoseconds reading,
                     std::size_t sessions) {
    process& who = of(server);
    not_too_often(who, reading);
    uses_lease(who, what);
    if (in_chain(what) && ++who.in_chain > 1) {
        world_->fail(rule::chain_alone, "server " + number(server) + " has two under way");
    }
    if (std::holds_alternative<campaign>(what) && sessions > 0) {
        world_->fail(rule::campaigns_without_sessions,
                     "server " + number(server) + " has " + std::to_string(sessions));
    }
    if (std::holds_alternative<resign>(what) && (sessions > 0 || !who.opened)) {
        world_->fail(rule::resigns_when_done, "server " + number(server) + " has " +
                                                  std::to_string(sessions) + " sessions, and has " +
                                                  (who.opened ? "" : "not ") + "opened");
    }
    who.under_way.emplace(is.value, sent{what, reading});
}

void books::not_too_often(process& who, nanoseconds reading) {
    who.lately.push_back(reading);
    while (reading - who.lately.front() > nanoseconds{who.asked}) {
        who.lately.pop_front();
    }
    if (who.lately.size() > requests_max) {
        world_->fail(rule::no_busy_loop, std::to_string(who.lately.size()) + " in " +
                                             number(who.asked.count()) + " ms");
    }
}

void books::uses_lease(process& who, const request& what) {
    const auto wrong = [this](const char* how, lease_id which) {
        world_->fail(rule::lease_used_once, std::string{how} + ", lease " + number(which.value));
    };
    if (const auto* const it = std::get_if<campaign>(&what)) {
        lease_page& page = who.leases[it->lease.value];
        if (page.campaigned || page.revoked) {
            wrong("campaigned with again", it->lease);
        }
        page.campaigned = true;
    } else if (const auto* const again = std::get_if<renew>(&what)) {
        if (again->lease.value != who.lease || who.leases[who.lease].revoked) {
            wrong("a renewal with another", again->lease);
        }
    } else if (const auto* const kept = std::get_if<keep_lease_alive>(&what)) {
        if (kept->lease.value != who.lease || who.leases[who.lease].revoked) {
            wrong("another is kept alive", kept->lease);
        }
    } else if (const auto* const gone = std::get_if<revoke_lease>(&what)) {
        lease_page& page = who.leases[gone->lease.value];
        if (page.revoked) {
            wrong("revoked again", gone->lease);
        }
        page.revoked = true;
    }
}

void books::is_answered(int server, ticket to, const answer& what, nanoseconds reading) {
    process& who = of(server);
    const auto at = who.under_way.find(to.value);
    if (at == who.under_way.end()) {
        return;
    }
    const sent asked = at->second;
    who.under_way.erase(at);
    who.in_chain -= in_chain(asked.what) ? 1 : 0;
    if (const auto* const granted = std::get_if<lease_granted>(&what)) {
        who.leases[granted->lease.value].ttl = std::min<milliseconds>(who.asked, granted->ttl);
    } else if (const auto* const won = std::get_if<campaigned>(&what); won && won->won) {
        who.lease = std::get<campaign>(asked.what).lease.value;
        who.term = won->at.value;
        who.ttl = who.leases[who.lease].ttl;
        who.won_at = reading;
        who.confirmed_at = asked.reading;
        who.longest_lease = won->state ? won->state->longest_lease : milliseconds{0};
        who.renewed = false;
        who.opened = false;
        who.active_since.reset();
    } else if (const auto* const done = std::get_if<renewed>(&what); done && done->done) {
        if (std::get<renew>(asked.what).mine.value == who.term) {
            who.confirmed_at = asked.reading;
            who.renewed = true;
        }
    }
}

// ---- a server and its clients

void books::is_active(int server, nanoseconds reading) {
    process& who = of(server);
    if (!who.active_since) {
        who.active_since = reading;
    }
}

void books::opens(int server) {
    process& who = of(server);
    if (!who.renewed) {
        world_->fail(rule::opened_after_renewal,
                     "server " + number(server) + " in term " + number(who.term));
    }
    if (who.term <= newest_opened_) {
        world_->fail(rule::one_active, "server " + number(server) + " opens in term " +
                                           number(who.term) + " after one opened in term " +
                                           number(newest_opened_));
    }
    const nanoseconds waited = *who.active_since - who.won_at;
    world_->counts->at_once += waited < nanoseconds{who.ttl} / 4 ? 1U : 0U;
    world_->counts->before_a_ttl += waited < nanoseconds{who.ttl} ? 1U : 0U;
    newest_opened_ = who.term;
    who.opened = true;
}

void books::answers(int server, nanoseconds reading) {
    ++world_->counts->answers;
    may_answer(server, reading);
}

void books::may_answer(int server, nanoseconds reading) const {
    const process& who = of(server);
    if (who.term != newest_opened_) {
        world_->fail(rule::one_active, "server " + number(server) + " answers in term " +
                                           number(who.term) + " after one opened in term " +
                                           number(newest_opened_));
    }
    if (reading >= who.confirmed_at + mandate(who.ttl)) {
        world_->fail(rule::within_mandate,
                     "server " + number(server) + " answers " +
                         number((reading - who.confirmed_at - mandate(who.ttl)).count()) +
                         " ns past its deadline");
    }
}

void books::steps_down(int server) {
    for (const auto& who : *clients_) {
        const bool believes = who->believes() && who->term() == of(server).term;
        world_->counts->beliefs_outlived += believes ? 1U : 0U;
    }
}

void books::grants(int server, const connection& to, std::uint64_t token, nanoseconds reading) {
    const process& who = of(server);
    ++world_->counts->grants;
    may_answer(server, reading);
    grants(token);
    if (covered(to.lease) > truth_->outliving()->longest_lease) {
        world_->fail(rule::lease_recorded, number(to.lease.count()) + " ms, and the record says " +
                                               number(truth_->outliving()->longest_lease.count()));
    }
    const milliseconds delay =
        world_->plan.automatic ? covered(who.longest_lease) : world_->plan.fixed_delay;
    if (reading < *who.active_since + delay) {
        world_->fail(rule::grants_in_time,
                     number((*who.active_since + delay - reading).count()) + " ns early");
    }
    one_believer(to.client, who.term, "is granted");
}

void books::grants(std::uint64_t token) {
    if (token <= last_token_) {
        world_->fail(rule::tokens_rise,
                     std::to_string(token) + " after " + std::to_string(last_token_));
    }
    last_token_ = token;
    if (!truth_->outliving() || token >= truth_->outliving()->ceiling) {
        world_->fail(rule::below_ceiling, std::to_string(token));
    }
}

milliseconds books::covered(milliseconds lease) const {
    return std::min(lease, world_->plan.covered_max);
}

// Nobody else believes, but one whom an operator ended in this term, or one of another term whom
// nothing was to protect.
void books::one_believer(int number_of, std::int64_t term, const char* how) const {
    const int lock = clients_->at(static_cast<std::size_t>(number_of))->lock();
    for (std::size_t at = 0; at < clients_->size(); ++at) {
        const client& other = *clients_->at(at);
        if (static_cast<int>(at) == number_of || other.lock() != lock || !other.believes()) {
            continue;
        }
        const bool protects = world_->plan.automatic && other.lease() <= world_->plan.covered_max;
        const bool wrong = other.term() == term ? !other.link()->forced : protects;
        if (wrong) {
            world_->fail(rule::one_believer, "client " + number(number_of) + " " + how +
                                                 " in term " + number(term) + ", client " +
                                                 std::to_string(at) + " believes since term " +
                                                 number(other.term()));
        }
    }
}

// The newer of two is judged: an older one that believes on may be excused.
void books::believes_now(int number_of) {
    const client& who = *clients_->at(static_cast<std::size_t>(number_of));
    if (who.term() == newest_opened_ && !who.link()->forced) {
        one_believer(number_of, who.term(), "believes");
    }
}

// ---- the store

void books::puts(const std::optional<state_record>& before, const state_record& after) {
    if (!before || after.longest_lease >= before->longest_lease) {
        return;
    }
    for (const auto& who : *clients_) {
        // Longer ones are not protected, but for a while.
        if (who->believes() && who->lease() > after.longest_lease &&
            who->lease() <= world_->plan.covered_max) {
            world_->fail(rule::lease_kept_recorded,
                         "lowered to " + number(after.longest_lease.count()) +
                             " ms while somebody believes for " + number(who->lease().count()));
        }
    }
}

}  // namespace monolock::simulation::failover
