#include "simulation/blunt_peer.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "protocol/frames.hpp"

namespace monolock::simulation {

using namespace std::chrono_literals;

namespace {

using protocol::error_code;

// docs/protocol.md, "The first message" and what follows it, read by hand.
std::optional<error_code> wrong_with_acquire(std::span<const std::uint8_t> sent) {
    const auto at = [sent](std::size_t place, int otherwise) {
        return place < sent.size() ? sent[place] : otherwise;
    };
    if (at(0, 1) != 1) {
        return sent[0] == 2 ? error_code::first_message_not_acquire
                            : error_code::unknown_message_type;
    }
    if (at(1, 1) != 1) {
        return error_code::unsupported_version;
    }
    if (sent.size() >= 6 && (sent[2] | sent[3] | sent[4] | sent[5]) == 0) {
        return error_code::lease_not_positive;
    }
    if (sent.size() < 8) {
        return std::nullopt;
    }
    const std::size_t length = sent[6] * 256U + sent[7];
    if (length == 0 || length > 255) {
        return length == 0 ? error_code::empty_lock_name : error_code::lock_name_too_long;
    }
    // No more than one byte of a script is not ASCII, and alone it is no UTF-8.
    const auto name = sent.subspan(8, std::min(length, sent.size() - 8));
    const bool ascii =
        std::all_of(name.begin(), name.end(), [](std::uint8_t letter) { return letter < 128; });
    return ascii || name.size() < length ? std::nullopt
                                         : std::optional{error_code::lock_name_not_utf8};
}

std::optional<garbage> garbage_in(const std::deque<std::vector<std::byte>>& bursts) {
    std::vector<std::uint8_t> sent;
    for (const auto& burst : bursts) {
        std::transform(burst.begin(), burst.end(), std::back_inserter(sent),
                       [](std::byte value) { return std::to_integer<std::uint8_t>(value); });
    }
    if (const auto wrong = wrong_with_acquire(sent)) {
        return garbage{.behind = 0, .code = *wrong};
    }
    if (sent.size() < 8 || sent.size() < 8U + sent[7]) {
        return std::nullopt;
    }
    const auto first = sent.begin() + 8 + sent[7];
    const auto wrong = std::find_if(first, sent.end(), [](std::uint8_t type) { return type != 2; });
    if (wrong == sent.end()) {
        return std::nullopt;
    }
    return garbage{
        .behind = 1 + static_cast<std::uint64_t>(wrong - first),
        .code = *wrong == 1 ? error_code::duplicate_acquire : error_code::unknown_message_type};
}

}  // namespace

blunt_peer::blunt_peer(context& world, rules& checks, dialer& network, int number)
    : world_{&world}, rules_{&checks}, network_{&network}, number_{number} {}

void blunt_peer::after(sim_time delay, void (blunt_peer::*what)()) {
    world_->events.in(delay, [this, what, attempt = attempt_] {
        if (attempt == attempt_) {
            (this->*what)();
        }
    });
}

void blunt_peer::start() {
    ++attempt_;
    link_ = nullptr;
    if (!calm_) {
        after(world_->random.spread(sim_time{1ms}, 2 * world_->plan.rest_max), &blunt_peer::dial);
    }
}

void blunt_peer::calm_down() {
    calm_ = true;
    if (link_ != nullptr) {
        link_->close(side::client);
    }
    start();
}

void blunt_peer::dial() {
    network_->dial(world_->plan.clients + number_, [this, attempt = attempt_](connection* link) {
        if (attempt == attempt_ && link != nullptr) {
            connected(*link);
        } else if (link != nullptr) {
            link->close(side::client);
        } else if (attempt == attempt_) {
            start();
        }
    });
}

void blunt_peer::connected(connection& link) {
    link_ = &link;
    stream_.emplace(*world_, link, side::client);
    link.own(side::client, this);
    write_script();
    rules_->of(link.id()).sends = garbage_in(bursts_);
    world_->log.note({"blunt peer", number_}, "connection {}: {} messages in {} bursts", link.id(),
                     messages_, bursts_.size());
    next_burst();
}

// ---- what it is going to send

void blunt_peer::write_script() {
    bursts_.clear();
    unsent_.clear();
    messages_ = 0;
    garbage_ = false;
    half_closed_ = false;
    reads_ = !world_->random.chance(200'000);
    ending_ =
        static_cast<ending>(world_->random.below(world_->plan.over == transport::records ? 5 : 4));
    script_acquire();
    for (std::uint64_t more = world_->random.below(6); more > 0; --more) {
        bursts_.emplace_back();
        script_heartbeats(1 + world_->random.below(reads_ ? 20 : 200));
    }
    if (world_->random.chance(300'000)) {
        script_garbage();
    }
}

void blunt_peer::script_acquire() {
    std::vector<std::byte>& first = bursts_.emplace_back();
    const std::uint64_t lock = world_->random.below(static_cast<std::uint64_t>(world_->plan.locks));
    const std::int64_t lease =
        world_->random.spread(world_->plan.lease_min.count(), world_->plan.lease_max.count());
    const auto frame = protocol::encode_acquire(static_cast<std::uint32_t>(lease),
                                                lock_name_of(static_cast<int>(lock)));
    first.assign(frame.bytes().begin(), frame.bytes().end());
    messages_ = 1;
    if (world_->random.chance(100'000)) {
        // Half of it, and then the rest does not come.
        first.resize(1 + world_->random.below(first.size() - 1));
        messages_ = 0;
        garbage_ = true;
        return;
    }
    script_heartbeats(world_->random.below(5));
}

void blunt_peer::script_heartbeats(std::uint64_t count) {
    bursts_.back().insert(bursts_.back().end(), count, protocol::heartbeat_frame[0]);
    messages_ += count;
}

void blunt_peer::script_garbage() {
    garbage_ = true;
    std::vector<std::byte>& burst = bursts_[world_->random.below(bursts_.size())];
    std::size_t at = world_->random.below(burst.size());
    if (burst.front() == std::byte{1} && at >= 2 && at < 6) {
        // A lease of weeks would outlast the run; one of nothing is refused.
        std::fill_n(burst.begin() + 2, 4, std::byte{0});
        return;
    }
    burst[at] = static_cast<std::byte>(world_->random.below(256));
}

// ---- sending and reading

void blunt_peer::next_burst() {
    if (bursts_.empty()) {
        finish();
        return;
    }
    unsent_.insert(unsent_.end(), bursts_.front().begin(), bursts_.front().end());
    bursts_.pop_front();
    send_odd_records();
    const std::uint32_t attempt = attempt_;
    send_some();
    if (attempt == attempt_) {
        after(world_->random.spread(sim_time{10us}, sim_time{world_->plan.lease_min}),
              &blunt_peer::next_burst);
    }
}

// Nobody hears of these, but for the last, after which nobody hears of anything.
void blunt_peer::send_odd_records() {
    if (stream_->records() == nullptr) {
        return;
    }
    if (world_->random.chance(200'000)) {
        for (std::uint64_t more = world_->random.below(4); more > 0; --more) {
            stream_->records()->send_silent();
        }
    }
    if (world_->random.chance(60'000)) {
        garbage_ = true;
        static_cast<void>(link_->write(side::client, std::as_bytes(std::span{"GET / HTTP/1.1"})));
    }
}

void blunt_peer::send_some() {
    if (link_ == nullptr || unsent_.empty()) {
        return;
    }
    claim_record& record = rules_->of(link_->id());
    if (!record.first_sent) {
        record.first_sent = world_->events.now();
    }
    const io_result did = stream_->write(unsent_);
    if (did.status == io_status::done) {
        unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(did.count));
    } else if (did.status != io_status::would_block) {
        gone();
    }
}

void blunt_peer::on_ready(connection& /*link*/) {
    if (!half_closed_) {
        send_some();
    }
    if (reads_) {
        read_some();
    }
}

void blunt_peer::read_some() {
    if (link_ == nullptr) {
        return;  // it could not write, and is gone
    }
    claim_record& record = rules_->of(link_->id());
    std::array<std::byte, 256> buffer{};
    for (;;) {
        const io_result got = stream_->read(buffer);
        if (got.status == io_status::would_block) {
            return;
        }
        if (got.status != io_status::done) {
            record.alert_read = got.status == io_status::alerted;
            const bool all_sent = half_closed_ && !garbage_;
            rules_->client_read_end(record, link_->troubled(),
                                    all_sent ? std::optional{messages_} : std::nullopt);
            gone();
            return;
        }
        rules_->client_read(record, std::span{buffer}.first(got.count));
    }
}

void blunt_peer::finish() {
    const sim_time patience = 2 * sim_time{world_->plan.lease_max};
    switch (ending_) {
        case ending::half_close:
            if (unsent_.empty()) {
                half_closed_ = true;
                stream_->shut_down_sending();
            }
            after(patience, &blunt_peer::gone);
            break;
        case ending::close:
            gone();
            break;
        case ending::abort:
            link_->abort(side::client);
            gone();
            break;
        case ending::alert:
            stream_->records()->send_fatal_alert();
            [[fallthrough]];
        case ending::wait:
            after(patience, &blunt_peer::gone);
            break;
    }
}

void blunt_peer::gone() {
    if (world_->random.chance(500'000)) {
        stream_->close();
    } else {
        link_->close(side::client);
    }
    start();
}

}  // namespace monolock::simulation
