#include "simulation/record_layer.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

namespace monolock::simulation {

namespace {

// type u8, length of the content u16, content, check sum u32. Smaller than the real thing, and
// large enough to be cut everywhere.
constexpr std::size_t header_bytes = 3;
constexpr std::size_t sum_bytes = 4;
constexpr std::size_t content_max = 16'384;

// How many records without bytes of the caller's one read takes; see channel.cpp.
constexpr int silent_records_max = 32;

constexpr std::array close_notify{std::byte{1}, std::byte{0}};
constexpr std::array internal_error{std::byte{2}, std::byte{80}};

std::uint32_t check_sum(std::uint32_t number, std::byte type, std::span<const std::byte> content) {
    std::uint32_t sum = 2'166'136'261U ^ number;
    const auto add = [&sum](std::byte value) {
        sum = (sum ^ std::to_integer<std::uint32_t>(value)) * 16'777'619U;
    };
    add(type);
    std::for_each(content.begin(), content.end(), add);
    return sum;
}

std::byte byte_of(std::size_t value, unsigned shift) {
    return static_cast<std::byte>((value >> shift) & 0xFFU);
}

}  // namespace

record_layer::record_layer(context& world, connection& link, side end)
    : world_{&world}, link_{&link}, end_{end} {}

// ---- reading

// The bytes that were not opened, those inside first and then those in the socket.
record_layer::raw_byte record_layer::raw_at(std::size_t index) const {
    if (index < raw_.size()) {
        return raw_[index];
    }
    const auto& unread = link_->unread_byte(end_, index - raw_.size());
    return {.value = unread.value, .at = unread.at};
}

std::size_t record_layer::raw_count() const noexcept {
    return raw_.size() + link_->unread(end_);
}

// Of the record that starts `from` bytes in; of its header alone as long as that is not among the
// first `within` bytes.
std::size_t record_layer::record_size(std::size_t from, std::size_t within) const {
    if (from + header_bytes > within) {
        return header_bytes;
    }
    const auto length = std::to_integer<std::size_t>(raw_at(from + 1).value) * 256 +
                        std::to_integer<std::size_t>(raw_at(from + 2).value);
    return header_bytes + length + sum_bytes;
}

bool record_layer::record_is_whole() const {
    return record_size(0, raw_.size()) <= raw_.size();
}

// As far as can be seen: a plain ACQUIRE or an HTTP request is told by its first bytes.
bool record_layer::is_a_record() const {
    if (raw_.empty()) {
        return true;
    }
    const auto type = static_cast<kind>(raw_.front().value);
    return (type == kind::alert || type == kind::silent || type == kind::data) &&
           record_size(0, raw_.size()) <= header_bytes + content_max + sum_bytes;
}

bool record_layer::holds_input() const noexcept {
    return content_used_ < content_.size() || (!dry_ && !raw_.empty());
}

io_result record_layer::read(std::span<std::byte> into) {
    dry_ = false;
    for (int record = 0; content_used_ == content_.size(); ++record) {
        switch (heard_) {
            case end_of_input::none:
                break;
            case end_of_input::close_notify:
                return {.status = io_status::eof};
            case end_of_input::alert:
                return {.status = io_status::alerted};
            case end_of_input::unreadable:
                return {.status = io_status::unreadable};
        }
        if (record == silent_records_max) {
            return {};
        }
        while (is_a_record() && !record_is_whole()) {
            const io_status got = pull();
            if (got != io_status::done) {
                return {.status = got};
            }
        }
        if (is_a_record()) {
            open_record();
        } else {
            refuse_record();
        }
    }
    const std::size_t there = std::min(into.size(), content_.size() - content_used_);
    // As if the caller had asked for less: records that do not fit into a buffer are rare in life.
    const bool fewer = there > 1 && world_->random.chance(world_->plan.short_reads);
    const std::size_t count = fewer ? 1 + world_->random.below(there - 1) : there;
    std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(content_used_), count, into.begin());
    content_used_ += count;
    last_read_arrived_ = content_arrived_;
    world_->counts->reads_held_back += holds_input() ? 1U : 0U;
    return {.status = io_status::done, .count = count};
}

// One read from the socket: up to the end of the record, or all that is there with read-ahead.
io_status record_layer::pull() {
    const std::size_t there = link_->unread(end_);
    const std::size_t most =
        world_->plan.read_ahead ? content_max : record_size(0, raw_.size()) - raw_.size();
    std::vector<std::byte> buffer(std::clamp<std::size_t>(there, 1, most));
    const std::size_t had = raw_.size();
    for (std::size_t index = 0; index < std::min(there, buffer.size()); ++index) {
        const auto& unread = link_->unread_byte(end_, index);
        raw_.push_back({.value = unread.value, .at = unread.at});
    }
    const io_result got = link_->read(end_, buffer);
    raw_.resize(had + got.count);
    dry_ = got.status == io_status::would_block;
    return got.status;
}

void record_layer::open_record() {
    const std::size_t size = record_size(0, raw_.size());
    const sim_time arrived = raw_[size - 1].at;
    std::vector<std::byte> record(size);
    std::transform(raw_.begin(), raw_.begin() + static_cast<std::ptrdiff_t>(size), record.begin(),
                   [](const raw_byte& one) { return one.value; });
    raw_.erase(raw_.begin(), raw_.begin() + static_cast<std::ptrdiff_t>(size));
    const std::span content =
        std::span{record}.subspan(header_bytes).first(size - header_bytes - sum_bytes);
    std::size_t sum = 0;
    for (const std::byte value : std::span{record}.last(sum_bytes)) {
        sum = sum * 256 + std::to_integer<std::size_t>(value);
    }
    if (sum != check_sum(opened_, record[0], content)) {
        refuse_record();
        return;
    }
    ++opened_;
    take_record(record[0], content, arrived);
}

void record_layer::take_record(std::byte type, std::span<const std::byte> content,
                               sim_time arrived) {
    switch (static_cast<kind>(type)) {
        case kind::data:
            content_.assign(content.begin(), content.end());
            content_used_ = 0;
            content_arrived_ = arrived;
            ++world_->counts->records_opened;
            return;
        case kind::alert:
            heard_ = std::ranges::equal(content, close_notify) ? end_of_input::close_notify
                                                               : end_of_input::alert;
            world_->counts->alerts_read += heard_ == end_of_input::alert ? 1U : 0U;
            return;
        case kind::silent:
            return;
    }
}

void record_layer::refuse_record() {
    heard_ = end_of_input::unreadable;
    send_fatal_alert();
}

sim_time record_layer::oldest_unread() const {
    if (content_used_ < content_.size()) {
        return content_arrived_;
    }
    const std::size_t count = raw_count();
    for (std::size_t from = 0; heard_ == end_of_input::none;) {
        const std::size_t size = record_size(from, count);
        if (from + size > count) {
            break;
        }
        if (static_cast<kind>(raw_at(from).value) == kind::data) {
            return raw_at(from + size - 1).at;
        }
        if (static_cast<kind>(raw_at(from).value) != kind::silent) {
            break;
        }
        from += size;
    }
    return never;
}

// ---- writing

std::vector<std::byte> record_layer::seal(kind of, std::span<const std::byte> content) {
    std::vector<std::byte> record;
    record.reserve(header_bytes + content.size() + sum_bytes);
    record.push_back(static_cast<std::byte>(of));
    record.push_back(byte_of(content.size(), 8));
    record.push_back(byte_of(content.size(), 0));
    record.insert(record.end(), content.begin(), content.end());
    const std::uint32_t sum = check_sum(sealed_++, record[0], content);
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        record.push_back(byte_of(sum, shift));
    }
    return record;
}

// Hands on what is left of the record that was begun.
io_status record_layer::flush() {
    const io_result did = link_->write(end_, half_sent_);
    half_sent_.erase(half_sent_.begin(),
                     half_sent_.begin() + static_cast<std::ptrdiff_t>(did.count));
    return did.status;
}

io_result record_layer::write(std::span<const std::byte> bytes) {
    if (heard_ == end_of_input::alert || failed()) {
        return {.status = io_status::reset};
    }
    if (bytes.size() < begun_.size() || !std::equal(begun_.begin(), begun_.end(), bytes.begin())) {
        world_->log.fail(rule::same_bytes_again,
                         "connection " + std::to_string(link_->id()) +
                             ": a half-sent record is followed by other bytes than it holds");
    }
    while (!half_sent_.empty() || begun_.size() < bytes.size()) {
        if (half_sent_.empty()) {
            begin_record(bytes.subspan(begun_.size()));
        }
        const io_status did = flush();
        if (did != io_status::done) {
            return {.status = did};
        }
        if (!half_sent_.empty()) {
            ++world_->counts->records_half_sent;
            return {.status = io_status::done, .count = 0};
        }
    }
    begun_.clear();
    return {.status = io_status::done, .count = bytes.size()};
}

// Of the first of them, or of all.
void record_layer::begin_record(std::span<const std::byte> bytes) {
    const bool cut = bytes.size() > 1 && world_->random.chance(world_->plan.record_cuts);
    const std::size_t size = cut ? 1 + world_->random.below(bytes.size() - 1) : bytes.size();
    const auto content = bytes.first(std::min(size, content_max));
    begun_.insert(begun_.end(), content.begin(), content.end());
    half_sent_ = seal(kind::data, content);
}

void record_layer::send_control(kind of, std::span<const std::byte> content) {
    if (!half_sent_.empty() || end_said_) {
        return;
    }
    end_said_ = of == kind::alert;
    half_sent_ = seal(of, content);
    static_cast<void>(flush());
}

void record_layer::send_close_notify() {
    if (heard_ != end_of_input::alert && !failed()) {
        send_control(kind::alert, close_notify);
    }
}

void record_layer::send_fatal_alert() {
    if (half_sent_.empty() && !end_said_) {
        send_control(kind::alert, internal_error);
        alert_sent_ = half_sent_.empty();
    }
}

void record_layer::send_silent() {
    send_control(kind::silent, {});
}

}  // namespace monolock::simulation
