#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulation/dialer.hpp"
#include "simulation/rules.hpp"
#include "simulation/stream.hpp"

namespace monolock::simulation {

// A peer without the client library: it sends what the library never would, and that the protocol
// either permits or answers with an ERROR. Heartbeats in a burst and in the segment of the ACQUIRE;
// half-closes and reads to the end; floods and never reads; garbage; half an ACQUIRE; silence. Over
// records: what is no record, records without bytes, a fatal alert, a FIN without close_notify.
class blunt_peer final : public socket_owner {
public:
    blunt_peer(context& world, rules& checks, dialer& network, int number);

    void start();
    void on_ready(connection& link) override;
    void calm_down();  // closes what it has and does nothing more

private:
    enum class ending : std::uint8_t { half_close, close, abort, wait, alert };

    void dial();
    void connected(connection& link);
    void write_script();
    void script_acquire();
    void script_garbage();
    void script_heartbeats(std::uint64_t count);
    void next_burst();
    void send_some();
    void send_odd_records();
    void read_some();
    void finish();
    void gone();
    void after(sim_time delay, void (blunt_peer::*what)());

    context* world_;
    rules* rules_;
    dialer* network_;
    int number_;
    std::uint32_t attempt_ = 0;
    bool calm_ = false;

    connection* link_ = nullptr;
    std::optional<stream> stream_;               // over link_
    std::deque<std::vector<std::byte>> bursts_;  // to be sent, one after the other
    std::vector<std::byte> unsent_;
    std::uint64_t messages_ = 0;  // well-formed ones in the whole script
    bool garbage_ = false;
    bool reads_ = true;
    bool half_closed_ = false;
    ending ending_ = ending::close;
};

}  // namespace monolock::simulation
