#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <string>

#include "server/connection_socket.hpp"
#include "server/deadline_list.hpp"
#include "server/foreign_protocol.hpp"
#include "server/peer_address.hpp"
#include "server/shard_loop.hpp"
#include "server/step_queue.hpp"

namespace monolock::server {

class tls_handshake;

// The shard's queue for the steps of TLS handshakes. A step computes for a millisecond or more, so
// one is taken for each turn of the loop: however many clients come at once, a live session waits
// for no more than one step. Which one is step_queue's to say. Used by the loop's thread alone.
class handshake_steps {
public:
    explicit handshake_steps(shard_loop& on) : loop_{&on} {}

    // Calls who->step() in its turn, if it is still open then.
    void add(boost::intrusive_ptr<tls_handshake> who);

private:
    void turn();
    void post_turn();

    shard_loop* loop_;
    step_queue<boost::intrusive_ptr<tls_handshake>> waiting_;
};

// What a TLS handshake needs of its shard. on_secured and on_failed are the handshake's last call:
// it has left its list by then.
class tls_handshake_owner {
public:
    virtual ~tls_handshake_owner() = default;
    // `identity` is the verified client's, empty if it was not asked who it is.
    virtual void on_secured(connection_socket&& socket, const peer_address& peer,
                            std::string&& identity) = 0;
    // It came to nothing; `why` is empty if the peer went away. The socket is open if it needs to
    // linger: an alert may be on its way, or what the peer said was not read.
    virtual void on_failed(connection_socket&& socket, const peer_address& peer,
                           const std::string& why) = 0;
    // The first bytes of a peer that does not speak TLS; on_failed follows.
    virtual void on_foreign(const peer_address& peer, foreign_protocol what) = 0;
    // What a handshake that begins now is to use.
    [[nodiscard]] virtual const tls_setting& tls_in_force() const noexcept = 0;
};

// A connection from accept to the end of its TLS handshake. Its deadline, in the shard's list,
// bounds the whole of it. Until the peer says something it is a socket and no more: OpenSSL's state
// is made with the first step.
class tls_handshake final : public deadline_entry, public readiness_handler {
public:
    tls_handshake(connection_socket&& socket, const peer_address& peer, handshake_steps& steps,
                  tls_handshake_owner& owner)
        : socket_{std::move(socket)}, peer_{peer}, steps_{&steps}, owner_{&owner} {}

    void start() { socket_.await_readable(*this); }

    // Whether the peer has sent anything yet.
    [[nodiscard]] bool has_begun() noexcept;

    // Gives up without a word. Calls on_failed with the reason.
    void give_up(const std::string& why);

private:
    friend class handshake_steps;

    void on_readable() override { steps_->add(this); }
    void on_writable() override { steps_->add(this); }

    void step();
    void look_at_first_bytes();

    connection_socket socket_;
    peer_address peer_;
    handshake_steps* steps_;
    tls_handshake_owner* owner_;
};

}  // namespace monolock::server
