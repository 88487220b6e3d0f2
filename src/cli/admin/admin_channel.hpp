#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/admin/event_splitter.hpp"
#include "config/address.hpp"

namespace monolock::cli {

// What an exchange with the admin API may take.
struct admin_limits {
    std::chrono::milliseconds connect_time_max{5000};   // resolving included
    std::chrono::milliseconds answer_time_max{30'000};  // a whole answer
    std::chrono::milliseconds silence_max{10'000};  // between two events, which come each second
    std::chrono::steady_clock::time_point give_up_at =
        std::chrono::steady_clock::time_point::max();  // whatever is under way
    std::size_t answer_bytes_max = std::size_t{256} * 1024 * 1024;
    std::size_t event_bytes_max = std::size_t{1} * 1024 * 1024;
};

struct admin_answer {
    unsigned status = 0;
    std::string body;
};

class http_stream;

// HTTP requests to one admin address, one after the other. Blocks, within the limits; an interrupt
// descriptor (not negative) that becomes readable ends any wait with `interrupted`. What keeps an
// answer from coming is admin_error, whose text names the address.
class admin_channel {
public:
    // The address is checked already.
    explicit admin_channel(const std::string& address, admin_limits limits = {},
                           int interrupt = -1);
    ~admin_channel();
    admin_channel(const admin_channel&) = delete;
    admin_channel& operator=(const admin_channel&) = delete;

    // Reads. The connection is kept for the next one; if it turns out to have ended meanwhile a
    // new one is made.
    [[nodiscard]] admin_answer get(std::string_view target);

    // POST or DELETE, exactly once. An answer that does not come leaves it open whether the server
    // has done it; the error says so.
    [[nodiscard]] admin_answer change(std::string_view method, std::string_view target);

    // Server-sent events, on a connection of their own: begins the stream, which replaces one that
    // was begun before, and waits for the next event of it.
    void begin_events(std::string_view target);
    [[nodiscard]] server_event next_event();

private:
    [[nodiscard]] std::unique_ptr<http_stream> connect() const;
    // Calls, and puts the address before what goes wrong.
    template <class Call>
    auto named(Call call) const;

    std::string address_;
    config::address where_;
    admin_limits limits_;
    int interrupt_;
    std::unique_ptr<http_stream> kept_;
    std::unique_ptr<http_stream> events_;
    event_splitter splitter_;
};

}  // namespace monolock::cli
