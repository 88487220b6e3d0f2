// fault_worker --server ADDRESS --history FILE --worker N --seed N [KEY N]…
//
// A program that uses the client library in earnest: several threads claim locks, work while they
// own them, release them or lose them, and claim again; a share of them loses patience in the
// queue. What each claim sees and does goes to the history (tests/history).
//
//     --clients 2      each with a background thread of the library's
//     --slots 4        threads of each client, one claim at a time each
//     --locks 4        lock-0 to lock-3; a client never claims one twice at once
//     --lease-min 500, --lease-max 2000, --hold-min 0, --hold-max 60, --rest-max 40   milliseconds
//     --impatient 10   parts of a hundred
//     --cheat 1        goes on working after its loss, to prove that the checkers see it
//     --eager 1        works before it is granted, for the same
//     --stay 1         does not end when it should, to prove that somebody notices
//
// A line "calm" on its input, or the end of it, says that the faults are over: each thread is
// served once more, and then the program ends.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "faults/recorder.hpp"
#include "monolock/client.hpp"
#include "simulation/random.hpp"

namespace monolock::faults {

namespace {

using history::kind;
using history::reason;
using simulation::random_source;
using std::chrono::milliseconds;

struct options {
    std::string server{};
    std::string history{};
    std::map<std::string_view, std::uint32_t> numbers{
        {"--worker", 1},    {"--seed", 1},         {"--clients", 2},    {"--slots", 4},
        {"--locks", 4},     {"--lease-min", 500},  {"--hold-min", 0},   {"--hold-max", 60},
        {"--rest-max", 40}, {"--lease-max", 2000}, {"--impatient", 10}, {"--cheat", 0},
        {"--eager", 0},     {"--stay", 0},
    };

    [[nodiscard]] std::uint32_t operator[](std::string_view key) const { return numbers.at(key); }
};

std::optional<options> parse(const std::vector<std::string_view>& words) {
    options chosen;
    for (std::size_t at = 0; at < words.size(); at += 2) {
        if (at + 1 == words.size()) {
            return std::nullopt;
        }
        const std::string_view value = words[at + 1];
        if (words[at] == "--server") {
            chosen.server = value;
        } else if (words[at] == "--history") {
            chosen.history = value;
        } else if (const auto known = chosen.numbers.find(words[at]);
                   known != chosen.numbers.end()) {
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), known->second);
            if (error != std::errc{} || end != value.data() + value.size()) {
                return std::nullopt;
            }
        } else {
            return std::nullopt;
        }
    }
    const bool enough = !chosen.server.empty() && !chosen.history.empty() &&
                        chosen["--locks"] >= chosen["--slots"] && chosen["--lease-min"] > 0 &&
                        chosen["--hold-max"] > 0 && chosen["--rest-max"] > 0 &&
                        chosen["--hold-min"] <= chosen["--hold-max"];
    return enough ? std::optional{chosen} : std::nullopt;
}

// What of the library's codes a history tells apart.
reason reason_of(const std::error_code& why) {
    if (why.category() != error_category()) {
        return reason::unreachable;
    }
    switch (static_cast<errc>(why.value())) {
        case errc::connect_timeout:
        case errc::acquire_timeout:
        case errc::heartbeat_timeout:
            return reason::silence;
        case errc::connection_closed:
            return reason::closed;
        case errc::server_shutting_down:
            return reason::shutdown;
        case errc::closed_by_administrator:
            return reason::administrator;
        case errc::protocol_violation:
            return reason::violation;
        default:  // what a sound client and server have no cause for
            return reason::refused;
    }
}

// The phases of a run, as all threads see them.
class calmness {
public:
    void begin() {
        const std::scoped_lock held{mutex_};
        calm_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] bool is_calm() const noexcept { return calm_; }
    // Until then, or until it is calm.
    void rest(history::instant span) {
        std::unique_lock held{mutex_};
        changed_.wait_for(held, span, [this] { return calm_.load(); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> calm_{false};
};

// One claim as several threads see it. Whoever makes the step writes it down, nobody twice.
class told_claim {
public:
    told_claim(const recorder& into, std::uint32_t number) : into_{&into}, number_{number} {}

    void ask(const std::string& lock, milliseconds lease) const {
        into_->note({.what = kind::ask, .claim = {0, number_}, .lease = lease}, lock);
    }
    void waiting() const { into_->note({.what = kind::waiting, .claim = {0, number_}}); }
    // False if it is over: its patience ended at the same moment.
    bool grant(std::uint64_t token, history::instant until) {
        if (!step(stage::asking, stage::holding)) {
            return false;
        }
        into_->note({.what = kind::grant, .claim = {0, number_}, .token = token, .until = until});
        return true;
    }
    void confirmed(history::instant until) const {
        into_->note({.what = kind::confirmed, .claim = {0, number_}, .until = until});
    }
    void act(history::instant at) const {
        into_->note({.at = at, .what = kind::act, .claim = {0, number_}});
    }
    void lose_patience() {
        if (step(stage::asking, stage::over)) {
            into_->note({.what = kind::end, .claim = {0, number_}});
        }
    }
    void fail(reason why) {
        if (step(stage::asking, stage::over)) {
            into_->note({.what = kind::loss, .why = why, .claim = {0, number_}});
        }
    }
    void lose(reason why) {
        if (step(stage::holding, stage::over)) {
            into_->note({.what = kind::loss, .why = why, .claim = {0, number_}});
        }
    }
    // False if it is lost.
    bool release() {
        if (!step(stage::holding, stage::over)) {
            return false;
        }
        into_->note({.what = kind::end, .claim = {0, number_}});
        return true;
    }
    void closed() const { into_->note({.what = kind::closed, .claim = {0, number_}}); }

private:
    enum class stage : std::uint8_t { asking, holding, over };

    bool step(stage from, stage to) noexcept { return at_.compare_exchange_strong(from, to); }

    const recorder* into_;
    std::uint32_t number_;
    std::atomic<stage> at_{stage::asking};
};

// A client of the library, and which claim of it is on which lock.
class shared_client {
public:
    explicit shared_client(const std::string& server)
        : client_{{.address = server,
                   .connect_timeout = milliseconds{2000},
                   .on_stage = [this](std::string_view lock, stage entered) {
                       if (entered == stage::queued) {
                           told(lock)->waiting();
                       }
                   }}} {}

    [[nodiscard]] client& library() noexcept { return client_; }

    // A lock that no claim of this client is on.
    std::string take_lock(random_source& random, std::uint32_t locks) {
        const std::scoped_lock held{mutex_};
        while (true) {
            std::string name = "lock-" + std::to_string(random.below(locks));
            if (claims_.try_emplace(name).second) {
                return name;
            }
        }
    }
    void put(const std::string& lock, std::shared_ptr<told_claim> claim) {
        const std::scoped_lock held{mutex_};
        claims_[lock] = std::move(claim);
    }
    void give_lock_back(const std::string& lock) {
        const std::scoped_lock held{mutex_};
        claims_.erase(lock);
    }

private:
    std::shared_ptr<told_claim> told(std::string_view lock) {
        const std::scoped_lock held{mutex_};
        return claims_.find(lock)->second;
    }

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<told_claim>, std::less<>> claims_;
    client client_;
};

// A thread that claims one lock after the other.
class slot {
public:
    slot(const options& chosen, const recorder& into, shared_client& by, calmness& phases,
         std::atomic<std::uint32_t>& numbers, std::uint64_t seed)
        : options_{&chosen},
          into_{&into},
          client_{&by},
          phases_{&phases},
          numbers_{&numbers},
          random_{seed} {}

    void run() {
        while (true) {
            const bool calm = phases_->is_calm();
            const bool served = claim(calm);
            if (calm && served) {
                return;
            }
            if (!served) {
                pause({}, milliseconds{20});  // a server that is away is not beaten
            }
            if (!phases_->is_calm()) {
                phases_->rest(draw("--rest-max"));
            }
        }
    }

private:
    history::instant draw(std::string_view max, milliseconds min = milliseconds{0}) {
        return random_.spread(std::max<history::instant>(std::chrono::microseconds{100}, min),
                              milliseconds{(*options_)[max]});
    }

    // One claim; whether it was granted.
    bool claim(bool calm) {
        const milliseconds lease{
            random_.spread((*options_)["--lease-min"], (*options_)["--lease-max"])};
        const std::string lock = client_->take_lock(random_, (*options_)["--locks"]);
        const auto told = std::make_shared<told_claim>(*into_, ++*numbers_);
        client_->put(lock, told);
        told->ask(lock, lease);
        if ((*options_)["--eager"] != 0) {
            told->act(recorder::now());
        }
        bool served = false;
        {
            auto held = acquire(lock, lease, *told, calm);
            const auto until = held.confirmed_until();
            served = held && told->grant(held.token(), until.time_since_epoch());
            if (served) {
                work(held, told, until);
            }
        }
        client_->give_lock_back(lock);
        return served;
    }

    lock acquire(const std::string& name, milliseconds lease, told_claim& told, bool calm) {
        std::stop_source enough;
        std::jthread patience;
        if (!calm && random_.below(100) < (*options_)["--impatient"]) {
            patience = std::jthread{[&told, &enough, span = random_.spread(milliseconds{1}, lease)](
                                        const std::stop_token& stop) {
                std::mutex mutex;
                std::condition_variable_any never;
                std::unique_lock held{mutex};
                never.wait_for(held, stop, span, [] { return false; });
                if (!stop.stop_requested()) {
                    told.lose_patience();
                    enough.request_stop();
                }
            }};
        }
        std::error_code why;
        auto held = client_->library().acquire(name, lease, enough.get_token(), why);
        if (why) {
            told.fail(reason_of(why));
        }
        return held;
    }

    // It is told already that the claim is confirmed until then.
    void work(lock& held, const std::shared_ptr<told_claim>& told, boot_clock::time_point until) {
        const bool cheat = (*options_)["--cheat"] != 0;
        if (!cheat) {
            held.on_loss([told](std::error_code why) { told->lose(reason_of(why)); });
        }
        const auto end =
            recorder::now() + draw("--hold-max", milliseconds{(*options_)["--hold-min"]});
        // In calm nobody keeps the others waiting.
        for (auto now = recorder::now(); now < end && (cheat || !phases_->is_calm());
             now = recorder::now()) {
            if (held.lost() && !cheat) {
                return;
            }
            if (const auto confirmed = held.confirmed_until(); confirmed > until) {
                until = confirmed;
                told->confirmed(until.time_since_epoch());
            }
            told->act(now);
            pause(cheat ? std::stop_token{} : held.loss_token(), std::min(end - now, draw_step()));
        }
        const bool by_itself = told->release();
        std::error_code ignored;
        held.release(ignored);
        if (by_itself) {
            told->closed();
        }
    }

    history::instant draw_step() { return random_.between(milliseconds{2}, milliseconds{20}); }

    static void pause(const std::stop_token& stop, history::instant span) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock held{mutex};
        never.wait_for(held, stop, span, [] { return false; });
    }

    const options* options_;
    const recorder* into_;
    shared_client* client_;
    calmness* phases_;
    std::atomic<std::uint32_t>* numbers_;
    random_source random_;
};

void run(const options& chosen) {
    const recorder into{chosen.history, chosen["--worker"]};
    std::atomic<std::uint32_t> numbers{0};
    calmness phases;
    random_source seeds{chosen["--seed"] * std::uint64_t{1000} + chosen["--worker"]};
    std::vector<std::unique_ptr<shared_client>> clients;
    std::vector<std::unique_ptr<slot>> slots;
    for (std::uint32_t count = 0; count < chosen["--clients"]; ++count) {
        clients.push_back(std::make_unique<shared_client>(chosen.server));
        for (std::uint32_t its = 0; its < chosen["--slots"]; ++its) {
            slots.push_back(std::make_unique<slot>(chosen, into, *clients.back(), phases, numbers,
                                                   seeds.next()));
        }
    }
    std::vector<std::jthread> threads;
    threads.reserve(slots.size());
    for (const auto& one : slots) {
        threads.emplace_back([&one] { one->run(); });
    }
    for (std::string line; std::getline(std::cin, line) && line != "calm";) {
    }
    phases.begin();
    threads.clear();  // joins
    while (chosen["--stay"] != 0) {
        ::pause();
    }
}

}  // namespace

}  // namespace monolock::faults

int main(int argc, char** argv) {
    using namespace monolock::faults;  // NOLINT(google-build-using-namespace): main's own
    const auto chosen = parse({argv + 1, argv + argc});
    if (!chosen) {
        std::cerr << "fault_worker: see the head of tests/faults/worker.cpp\n";
        return 2;
    }
    try {
        run(*chosen);
    } catch (const std::exception& why) {
        std::cerr << "fault_worker: " << why.what() << '\n';
        return 1;
    }
    return 0;
}
