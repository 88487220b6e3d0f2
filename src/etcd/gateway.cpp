#include "etcd/gateway.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <system_error>
#include <utility>

#include "core/assert.hpp"
#include "etcd/exchange.hpp"
#include "etcd/messages/answers.hpp"
#include "etcd/messages/calls.hpp"
#include "etcd/messages/json_reader.hpp"
#include "etcd/messages/watch_reader.hpp"
#include "etcd/user.hpp"
#include "posix/boot_time.hpp"
#include "posix/boot_timer.hpp"
#include "posix/descriptor.hpp"

namespace monolock::etcd {

namespace {

using coordination::revision;
using coordination::ticket;
using coordination::time_point;
using coordination::watch_event;
using posix::boot_now;

// A request until its answer is told. Without an exchange it waits for a token.
struct call {
    ticket to;
    coordination::request what;
    time_point end;
    bool repeated = false;
    std::unique_ptr<exchange> under_way{};
};

struct authentication {
    time_point end;
    std::unique_ptr<exchange> under_way;
};

struct watch_state {
    watch_state(const key_names& keys, revision from_where, time_point until)
        : from{from_where}, reader{keys, from_where}, end{until} {}

    revision from;
    watch_reader reader;
    time_point end;      // of establishing it, then of its silence
    bool heard = false;  // since its end was last looked at
    std::unique_ptr<exchange> under_way{};
};

std::string within(std::chrono::nanoseconds patience) {
    return " within " +
           std::to_string(std::chrono::ceil<std::chrono::milliseconds>(patience).count()) + " ms";
}

}  // namespace

class gateway::shell {
public:
    explicit shell(gateway_options options)
        : options_{std::move(options)},
          keys_{options_.prefix},
          wake_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {
        MONOLOCK_ASSERT(!options_.endpoints.empty());
        if (!wake_) {
            throw std::system_error{errno, std::system_category(), "eventfd"};
        }
    }

    void send(ticket to, coordination::request what) {
        begin(calls_.emplace_back(call{to, std::move(what), boot_now() + options_.patience}));
    }
    void watch(revision from) {
        MONOLOCK_ASSERT(from.value > 0);
        stop_watching();
        watch_.emplace(keys_, from, boot_now() + options_.patience);
        if (has_token(watch_->end)) {
            begin_watch();
        }
    }
    void stop_watching() {
        watch_.reset();
        std::erase_if(news_,
                      [](const news& each) { return std::holds_alternative<watch_event>(each); });
    }
    std::vector<news> poll(time_point until);
    void wake() noexcept {
        const std::uint64_t one = 1;
        static_cast<void>(::write(wake_.get(), &one, sizeof one) == sizeof one);
    }

private:
    // Tokens.
    bool has_token(time_point end);
    void begin_authentication(time_point end);
    void finish_authentication(CURLcode result);
    void fail_authentication(const std::string& why);
    void take_token(std::string token);
    // Calls.
    void begin(call& which);
    void finish(std::list<call>::iterator which, CURLcode result);
    void tell(std::list<call>::iterator which, coordination::answer what);
    // The watch.
    void begin_watch();
    void finish_watch(CURLcode result);
    void break_watch(const std::string& why);
    void tell(std::vector<watch_event> events);
    // Turns of poll().
    void take_finished();
    void end_overdue(time_point now);
    [[nodiscard]] time_point next_end() const;
    bool take_wake() noexcept;

    [[nodiscard]] std::string at(std::size_t endpoint, const std::string& why) const {
        return config::to_string(options_.endpoints[endpoint]) + ": " + why;
    }
    [[nodiscard]] std::size_t endpoint_of(const std::unique_ptr<exchange>& under_way) const;
    [[nodiscard]] std::string overdue(const std::unique_ptr<exchange>& under_way) const;
    [[nodiscard]] std::string why_ended(const std::unique_ptr<exchange>& over,
                                        CURLcode result) const;
    void judge(std::size_t endpoint, verdict of_endpoint);
    void drop_token(const std::string& token);

    const gateway_options options_;
    const key_names keys_;
    posix::descriptor wake_;
    posix::boot_timer timer_;
    transfers transfers_;  // before all that is among them

    std::size_t endpoint_ = 0;  // of the next exchange
    // Empty: none is needed, or etcd wants none.
    std::optional<std::string> token_;
    std::optional<authentication> authentication_;
    std::list<call> calls_;
    std::optional<watch_state> watch_;
    std::vector<news> news_;
};

// --- turns

std::vector<news> gateway::shell::poll(time_point until) {
    for (;;) {
        // Before the last look for answers: what comes with this look is not overdue.
        const time_point now = boot_now();
        int running = 0;
        curl_multi_perform(transfers_.get(), &running);
        take_finished();
        end_overdue(now);
        const bool woken = take_wake();
        if (woken || !news_.empty() || now >= until) {
            return std::exchange(news_, {});
        }
        timer_.set(std::min(until, next_end()).time_since_epoch());
        std::array<curl_waitfd, 2> others{
            {{wake_.get(), CURL_WAIT_POLLIN, 0}, {timer_.descriptor(), CURL_WAIT_POLLIN, 0}}};
        // Returns at once if an exchange was added, and when libcurl's own timers are due. The
        // limit is ours to choose: the timer is there for what must be in time.
        constexpr int limit_ms = 60'000;
        curl_multi_poll(transfers_.get(), others.data(), others.size(), limit_ms, nullptr);
    }
}

void gateway::shell::take_finished() {
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(transfers_.get(), &left)) {
        const CURL* const handle = message->easy_handle;
        const CURLcode result = message->data.result;
        if (authentication_ && authentication_->under_way->is(handle)) {
            finish_authentication(result);
        } else if (watch_ && watch_->under_way && watch_->under_way->is(handle)) {
            finish_watch(result);
        } else {
            const auto found = std::ranges::find_if(calls_, [handle](const call& each) {
                return each.under_way && each.under_way->is(handle);
            });
            MONOLOCK_ASSERT(found != calls_.end());
            finish(found, result);
        }
    }
}

void gateway::shell::end_overdue(time_point now) {
    if (authentication_ && authentication_->end <= now) {
        const std::size_t endpoint = authentication_->under_way->endpoint();
        judge(endpoint, verdict::move_on);
        fail_authentication(at(endpoint, overdue(authentication_->under_way)));
    }
    for (auto each = calls_.begin(); each != calls_.end();) {
        const auto current = each++;
        if (current->end <= now) {
            const std::size_t endpoint = endpoint_of(current->under_way);
            judge(endpoint, verdict::move_on);
            tell(current, coordination::failed{at(endpoint, overdue(current->under_way))});
        }
    }
    if (!watch_) {
        return;
    }
    const bool running = watch_->reader.where() == watch_reader::state::running;
    if (std::exchange(watch_->heard, false) && running) {
        const bool limited = options_.watch_silence_max > std::chrono::nanoseconds{0};
        watch_->end = limited ? now + options_.watch_silence_max : time_point::max();
    }
    if (watch_->end <= now) {
        const std::size_t endpoint = endpoint_of(watch_->under_way);
        judge(endpoint, verdict::move_on);
        const std::string why =
            running ? "silence" + within(options_.watch_silence_max) : overdue(watch_->under_way);
        break_watch(watch_->under_way ? why : at(endpoint, why));
    }
}

time_point gateway::shell::next_end() const {
    time_point first = time_point::max();
    if (authentication_) {
        first = std::min(first, authentication_->end);
    }
    for (const call& each : calls_) {
        first = std::min(first, each.end);
    }
    return watch_ ? std::min(first, watch_->end) : first;
}

bool gateway::shell::take_wake() noexcept {
    std::uint64_t count = 0;
    return ::read(wake_.get(), &count, sizeof count) == sizeof count;
}

// What waits for a token is where the authentication is.
std::size_t gateway::shell::endpoint_of(const std::unique_ptr<exchange>& under_way) const {
    return (under_way ? under_way : authentication_->under_way)->endpoint();
}

std::string gateway::shell::overdue(const std::unique_ptr<exchange>& under_way) const {
    const char* const what = !under_way                   ? "no token"
                             : under_way->was_connected() ? "no answer"
                                                          : "no connection";
    return what + within(options_.patience);
}

// libcurl's limit for connecting is the patience as well, and which of the two is noticed first is
// chance.
std::string gateway::shell::why_ended(const std::unique_ptr<exchange>& over,
                                      CURLcode result) const {
    return result == CURLE_OPERATION_TIMEDOUT ? overdue(over) : over->why(result);
}

// The one after an endpoint that failed is next, unless another failure said so already.
void gateway::shell::judge(std::size_t endpoint, verdict of_endpoint) {
    if (of_endpoint == verdict::move_on && endpoint == endpoint_) {
        endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
    }
}

// --- calls

void gateway::shell::begin(call& which) {
    if (has_token(which.end)) {
        which.under_way = std::make_unique<exchange>(transfers_, options_, endpoint_,
                                                     call_for(which.what, keys_), *token_);
    }
}

void gateway::shell::finish(std::list<call>::iterator which, CURLcode result) {
    const exchange& over = *which->under_way;
    const std::size_t endpoint = over.endpoint();
    if (result != CURLE_OK) {
        judge(endpoint, verdict::move_on);
        tell(which, coordination::failed{at(endpoint, why_ended(which->under_way, result))});
        return;
    }
    reading read = read_answer(which->what, keys_, over.answer());
    judge(endpoint, read.of_endpoint);
    if (read.of_endpoint == verdict::stale_token && !options_.user_file.empty()) {
        drop_token(over.token());
        if (!std::exchange(which->repeated, true)) {
            which->under_way.reset();
            begin(*which);
            return;
        }
    }
    if (auto* const why = std::get_if<coordination::failed>(&read.what)) {
        const bool unasked = read.of_endpoint == verdict::stale_token && options_.user_file.empty();
        why->why = at(endpoint, why->why + (unasked ? ", and no user file is given" : ""));
    }
    tell(which, std::move(read.what));
}

void gateway::shell::tell(std::list<call>::iterator which, coordination::answer what) {
    news_.emplace_back(answered{which->to, std::move(what)});
    calls_.erase(which);
}

// --- tokens

// Without one, sees to it that one will come, or that it is told by that time that none does.
bool gateway::shell::has_token(time_point end) {
    if (options_.user_file.empty()) {
        token_ = "";
    }
    if (!token_ && !authentication_) {
        begin_authentication(end);
    }
    return token_.has_value();
}

void gateway::shell::begin_authentication(time_point end) {
    const auto who = read_user_file(options_.user_file);
    if (!who) {
        fail_authentication("the user file " + one_line(options_.user_file) + ": " +
                            who.error().text);
        return;
    }
    authentication_.emplace(authentication{
        end,
        std::make_unique<exchange>(transfers_, options_, endpoint_, authenticate_call(*who), "")});
}

void gateway::shell::finish_authentication(CURLcode result) {
    const exchange& over = *authentication_->under_way;
    const std::size_t endpoint = over.endpoint();
    if (result != CURLE_OK) {
        judge(endpoint, verdict::move_on);
        return fail_authentication(at(endpoint, why_ended(authentication_->under_way, result)));
    }
    token_reading read = read_token(over.answer());
    if (!read.token) {
        judge(endpoint, read.why.of_endpoint);
        return fail_authentication(at(endpoint, read.why.why));
    }
    take_token(*std::move(read.token));
}

void gateway::shell::fail_authentication(const std::string& why) {
    authentication_.reset();
    for (auto each = calls_.begin(); each != calls_.end();) {
        const auto current = each++;
        if (!current->under_way) {
            tell(current, coordination::failed{"no token: " + why});
        }
    }
    if (watch_ && !watch_->under_way) {
        break_watch("no token: " + why);
    }
}

void gateway::shell::take_token(std::string token) {
    token_ = std::move(token);
    authentication_.reset();
    for (call& each : calls_) {
        if (!each.under_way) {
            begin(each);
        }
    }
    if (watch_ && !watch_->under_way) {
        begin_watch();
    }
}

// Another call may have brought a newer one meanwhile.
void gateway::shell::drop_token(const std::string& token) {
    if (token_ == token) {
        token_.reset();
    }
}

// --- the watch

void gateway::shell::begin_watch() {
    const auto take = [this](std::string_view bytes) {
        std::vector<watch_event> events;
        watch_->reader.take(bytes, events);
        watch_->heard = true;
        tell(std::move(events));
        return watch_->reader.where() != watch_reader::state::broken;
    };
    watch_->under_way = std::make_unique<exchange>(transfers_, options_, endpoint_,
                                                   watch_call(watch_->from, keys_), *token_, take);
}

void gateway::shell::finish_watch(CURLcode result) {
    const exchange& over = *watch_->under_way;
    std::vector<watch_event> events;
    verdict of_endpoint = verdict::move_on;
    if (watch_->reader.where() == watch_reader::state::broken) {
        of_endpoint = watch_->reader.of_endpoint();  // it was told already
    } else if (result != CURLE_OK) {
        watch_->reader.break_off(why_ended(watch_->under_way, result), events);
    } else if (const reply answer = over.answer(); answer.status != status_ok) {
        const failure why = read_failure(answer);
        of_endpoint = why.of_endpoint;
        watch_->reader.break_off(why.why, events);
    } else {
        watch_->reader.end(events);
        of_endpoint = watch_->reader.of_endpoint();
    }
    tell(std::move(events));
    if (of_endpoint == verdict::stale_token) {
        drop_token(over.token());
    }
    judge(over.endpoint(), of_endpoint);
    watch_.reset();
}

void gateway::shell::break_watch(const std::string& why) {
    std::vector<watch_event> events;
    watch_->reader.break_off(why, events);
    tell(std::move(events));
    watch_.reset();
}

void gateway::shell::tell(std::vector<watch_event> events) {
    for (watch_event& each : events) {
        auto* const broken = std::get_if<coordination::watch_broken>(&each);
        if (broken != nullptr && watch_->under_way) {
            broken->why = at(watch_->under_way->endpoint(), broken->why);
        }
        news_.emplace_back(std::move(each));
    }
}

// --- the gateway

gateway::gateway(gateway_options options) : shell_{std::make_unique<shell>(std::move(options))} {}
gateway::~gateway() = default;

void gateway::send(ticket to, coordination::request what) {
    shell_->send(to, std::move(what));
}
void gateway::watch(revision from) {
    shell_->watch(from);
}
void gateway::stop_watching() {
    shell_->stop_watching();
}
std::vector<news> gateway::poll(time_point until) {
    return shell_->poll(until);
}
void gateway::wake() noexcept {
    shell_->wake();
}

}  // namespace monolock::etcd
