// A worker of a fleet: applies payments, one worker at a time for each account.
//
//     worker SERVER DATABASE [LEASE_MS]
//
// Any number may run, on any machines. It ends when nothing is left to do, or at SIGTERM after the
// payment that it is at.

#include <libpq-fe.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <monolock/monolock.hpp>

namespace {

constexpr int batch = 50;  // payments in one turn

using database = std::unique_ptr<PGconn, void (*)(PGconn*)>;
using rows = std::unique_ptr<PGresult, void (*)(PGresult*)>;

rows ask(PGconn* to, const char* statement, const std::vector<std::string>& values = {}) {
    std::vector<const char*> texts;
    texts.reserve(values.size());
    for (const auto& value : values) {
        texts.push_back(value.c_str());
    }
    rows result{PQexecParams(to, statement, static_cast<int>(texts.size()), nullptr, texts.data(),
                             nullptr, nullptr, 0),
                PQclear};
    if (*PQresultErrorMessage(result.get()) != '\0' || PQstatus(to) != CONNECTION_OK) {
        throw std::runtime_error(PQerrorMessage(to));
    }
    return result;
}

// Rolls back unless it was committed: what a payment consists of happens wholly or not at all.
class transaction {
public:
    explicit transaction(PGconn* on) : on_{on} { ask(on_, "BEGIN"); }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (!is_done_) {
            PQclear(PQexec(on_, "ROLLBACK"));
        }
    }
    void commit() {
        ask(on_, "COMMIT");
        is_done_ = true;
    }

private:
    PGconn* on_;
    bool is_done_ = false;
};

// Applies the oldest payment of the account that is left; false if there is none.
bool apply_next(PGconn* to, const std::string& account, const std::string& token) {
    transaction step{to};
    // The fence comes first. It refuses whoever was overtaken, and as its row stays locked until
    // the end of the transaction, nobody with another token gets in between. Without it a worker
    // that was paused here for longer than its lease would wake up and apply a payment that its
    // successor has applied already.
    const auto fence =
        ask(to, "UPDATE account SET token = $2 WHERE name = $1 AND token <= $2 RETURNING balance",
            {account, token});
    if (PQntuples(fence.get()) == 0) {
        throw std::runtime_error("a later owner was here");
    }
    const auto next = ask(to,
                          "SELECT id, amount FROM payment WHERE account = $1 AND done_by IS NULL "
                          "ORDER BY id LIMIT 1",
                          {account});
    if (PQntuples(next.get()) == 0) {
        return false;
    }
    const std::string id = PQgetvalue(next.get(), 0, 0);
    ask(to, "UPDATE account SET balance = balance + $2 WHERE name = $1",
        {account, PQgetvalue(next.get(), 0, 1)});
    ask(to, "UPDATE payment SET done_by = $2 WHERE id = $1", {id, token});
    step.commit();
    std::cout << "applied " << id << " of " << account << " under " << token << std::endl;
    return true;
}

std::string account_with_work(PGconn* in) {
    // Any of them, so that the workers spread.
    const auto found = ask(in,
                           "SELECT account FROM payment WHERE done_by IS NULL GROUP BY account "
                           "ORDER BY random() LIMIT 1");
    return PQntuples(found.get()) == 0 ? "" : PQgetvalue(found.get(), 0, 0);
}

void work_off(monolock::client& locks, const std::string& conninfo, std::chrono::milliseconds lease,
              const std::stop_token& stop) {
    const database to{PQconnectdb(conninfo.c_str()), PQfinish};
    // A worker that froze inside a transaction keeps the fence's row locked: no longer than this.
    ask(to.get(), "SELECT set_config('idle_in_transaction_session_timeout', $1, false)",
        {std::to_string(lease.count())});
    for (std::string account; !stop.stop_requested();) {
        account = account_with_work(to.get());
        if (account.empty()) {
            return;
        }
        // Waits for whoever has this account, and tries again while the server is away. The stop
        // token fires when the lock is lost or the program is asked to end; it is looked at
        // between payments, and the fence guards the one that is under way. After a batch the next
        // one in the queue has its turn.
        locks.with_lock_retry(
            "account/" + account, lease,
            [&](const std::stop_token& end, std::uint64_t token) {
                const auto mine = std::to_string(token);
                for (int left = batch; left > 0 && !end.stop_requested(); --left) {
                    if (!apply_next(to.get(), account, mine)) {
                        return;
                    }
                }
            },
            stop);
    }
}

// A whole word as a number that the type can hold, or false.
template <class Number>
bool read_number(std::string_view word, Number& into) {
    const char* const end = word.data() + word.size();
    const auto [rest, wrong] = std::from_chars(word.data(), end, into);
    return wrong == std::errc{} && rest == end;
}

}  // namespace

int main(int count, char** words) {
    std::uint32_t lease_ms = 10'000;
    if (count < 3 || (count > 3 && !read_number(words[3], lease_ms))) {
        std::cerr << "usage: " << words[0] << " SERVER DATABASE [LEASE_MS]" << std::endl;
        return 2;
    }
    // A lease is how long a worker that froze blocks its account; it bounds no work.
    const std::chrono::milliseconds lease{lease_ms};

    // SIGTERM asks to stop: taken by a thread of its own, so that it may lock and allocate.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    std::stop_source stop;
    std::thread{[ends, stop]() mutable {
        int which = 0;
        sigwait(&ends, &which);
        stop.request_stop();
    }}.detach();

    try {
        monolock::client locks{{.address = words[1]}};
        while (!stop.stop_requested()) {
            try {
                work_off(locks, words[2], lease, stop.get_token());
                return 0;
            } catch (const monolock::error& failed) {
                if (failed.code() == monolock::errc::stopped) {
                    return 0;
                }
                if (failed.at() != monolock::stage::held) {
                    throw;  // not permitted, or a wrong address: more tries would not help
                }
                // The lock was lost while it worked. What was committed stands; a new turn is a
                // new claim, at the end of the queue.
                std::cerr << "lost: " << failed.what() << std::endl;
            }
        }
        return 0;
    } catch (const std::exception& failed) {
        std::cerr << words[0] << ": " << failed.what() << std::endl;
        return 1;
    }
}
