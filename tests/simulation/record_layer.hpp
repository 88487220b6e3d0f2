#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulation/network.hpp"

namespace monolock::simulation {

// One end of a TLS connection after its handshake, as far as a lock server notices it. Modelled on
// what OpenSSL does under the settings of src/tls/context.hpp:
//  - Bytes travel in records, and a record is opened whole or not at all. What is written together
//    may be cut into several, and the network cuts them anywhere.
//  - A read returns bytes of one record, at most what was asked. The rest stays inside, and with
//    read-ahead so do further records: all of that has left the socket, whose readiness says
//    nothing about it.
//  - A write is done when all its records are out. Until then it took nothing, and the next one
//    begins with the same bytes and offers at least as many: what goes out are the records as they
//    were sealed.
//  - A close_notify or a fatal alert is the peer's word. What cannot be opened is answered with a
//    fatal alert, and nothing goes on.
// Records have numbers and check sums, and so the model notices if the network breaks one.
class record_layer {
public:
    record_layer(context& world, connection& link, side end);

    [[nodiscard]] io_result read(std::span<std::byte> into);
    [[nodiscard]] io_result write(std::span<const std::byte> bytes);

    // Whether a read may find bytes although the socket never becomes readable again. To be asked
    // after a read.
    [[nodiscard]] bool holds_input() const noexcept;

    // Each as far as the socket takes it at once, and not within a half-sent record.
    void send_close_notify();
    void send_fatal_alert();
    // A record without bytes of the caller's, such as a key update.
    void send_silent();

    // A fatal alert of this end's was handed to the kernel whole.
    [[nodiscard]] bool alert_sent() const noexcept { return alert_sent_; }
    // What came could not be opened.
    [[nodiscard]] bool failed() const noexcept { return heard_ == end_of_input::unreadable; }
    // The peer's word has been opened: close_notify or a fatal alert.
    [[nodiscard]] bool peer_ended() const noexcept {
        return heard_ == end_of_input::close_notify || heard_ == end_of_input::alert;
    }

    // For the rules. A byte has arrived when its whole record has: never if no such byte is unread.
    [[nodiscard]] sim_time oldest_unread() const;
    // When the last byte that was read had arrived.
    [[nodiscard]] sim_time last_read_arrived() const noexcept { return last_read_arrived_; }

private:
    enum class kind : std::uint8_t { alert = 21, silent = 22, data = 23 };
    enum class end_of_input : std::uint8_t { none, close_notify, alert, unreadable };

    struct raw_byte {
        std::byte value{};
        sim_time at{0};
    };

    [[nodiscard]] raw_byte raw_at(std::size_t index) const;
    [[nodiscard]] std::size_t raw_count() const noexcept;
    [[nodiscard]] std::size_t record_size(std::size_t from, std::size_t within) const;
    [[nodiscard]] bool is_a_record() const;
    [[nodiscard]] bool record_is_whole() const;
    [[nodiscard]] io_status pull();
    void open_record();
    void take_record(std::byte type, std::span<const std::byte> content, sim_time arrived);
    void refuse_record();
    [[nodiscard]] std::vector<std::byte> seal(kind of, std::span<const std::byte> content);
    [[nodiscard]] io_status flush();
    void begin_record(std::span<const std::byte> bytes);
    void send_control(kind of, std::span<const std::byte> content);

    context* world_;
    connection* link_;
    side end_;

    std::vector<raw_byte> raw_;       // read from the socket and not opened
    std::vector<std::byte> content_;  // of the record that was opened last
    std::size_t content_used_ = 0;
    sim_time content_arrived_{0};
    sim_time last_read_arrived_{0};
    bool dry_ = false;  // the last read found the socket empty
    end_of_input heard_ = end_of_input::none;
    std::uint32_t opened_ = 0;

    std::vector<std::byte> half_sent_;  // what the socket has not taken yet of a record
    std::vector<std::byte> begun_;      // what the caller must offer again: all up to its end
    bool end_said_ = false;             // close_notify or an alert: nothing follows
    bool alert_sent_ = false;
    std::uint32_t sealed_ = 0;
};

}  // namespace monolock::simulation
