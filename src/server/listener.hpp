#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "config/address.hpp"
#include "posix/descriptor.hpp"

namespace monolock::server {

// A bound and listening socket.
struct listening_socket {
    posix::descriptor descriptor;
    std::string address;  // as people write it, with the port that was taken

    [[nodiscard]] bool is_unix() const noexcept { return address.starts_with("unix:"); }
};

// Another descriptor of the same socket, close-on-exec. Throws std::system_error.
[[nodiscard]] posix::descriptor duplicate(const listening_socket& socket);

struct tcp_target {
    sockaddr_storage address{};
    socklen_t size = 0;
};

// An address whose host name need not be resolved any more: a resolver takes its time.
struct resolved_address {
    config::address as_given;
    std::vector<tcp_target> targets;  // none of a Unix socket
};

// Throws std::runtime_error with one line that names the address and why.
[[nodiscard]] resolved_address resolve(const config::address& where);

// Everything that one -listen value stands for. Destroying it closes the sockets and removes a Unix
// socket's file; the lock file beside that stays, because removing it would let two starters each
// lock a file of their own.
class listener {
public:
    // Binds and listens on every address that the host name resolves to, or on none: throws
    // std::runtime_error with one line that names the address and why. Port 0 takes a free port,
    // the same one for all addresses. An empty host, and [::], mean IPv6 and IPv4 (IPv4 alone on a
    // machine without IPv6). A Unix socket's file that no server listens on is replaced.
    // With a mode, that socket's file gets it before anybody can connect.
    explicit listener(const config::address& where, std::optional<mode_t> unix_mode = {})
        : listener{resolve(where), unix_mode} {}
    explicit listener(const resolved_address& where, std::optional<mode_t> unix_mode = {});
    // Takes over sockets that listen already, which somebody else opened. Their files, if they are
    // Unix sockets, are that one's to remove.
    explicit listener(std::vector<posix::descriptor> inherited);
    listener(listener&& other) noexcept;
    listener& operator=(listener&&) = delete;
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;
    ~listener() { close(); }

    [[nodiscard]] const std::vector<listening_socket>& sockets() const noexcept { return sockets_; }
    // Of all of them, separated by commas.
    [[nodiscard]] std::string addresses() const;

    // What the destructor does, earlier. Duplicates of the descriptors are others' to close.
    void close() noexcept;
    // Only the removal of the file; safe at any moment, for an exit without ceremony.
    void remove_file() noexcept;

private:
    void listen_tcp(const config::tcp_address& where, const std::vector<tcp_target>& targets);
    void listen_unix(const config::unix_address& where, std::optional<mode_t> mode);

    std::vector<listening_socket> sockets_;
    std::string unix_path_;  // empty: none of ours
    dev_t unix_device_ = 0;  // with the inode: which file is ours
    ino_t unix_inode_ = 0;
    posix::descriptor unix_lock_;  // held while unix_path_ is ours
};

// What would keep a listener from that address, for one that is to be opened later.
struct obstacle {
    std::string what;       // one line that names the address and why
    bool may_pass = false;  // another program has the address now
};

// Nothing is opened: a TCP address is bound to for a moment, without listening, so that nobody can
// connect and another server may listen there meanwhile; of a Unix socket only files are looked at,
// not whether somebody uses it.
[[nodiscard]] std::optional<obstacle> find_obstacle(const resolved_address& where);

}  // namespace monolock::server
