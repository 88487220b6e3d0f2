// A program of somebody else: one acquire, served by a server of its own that knows just that.

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <thread>

#include <monolock/monolock.hpp>

namespace {

constexpr std::size_t acquire_bytes = 8 + sizeof "nightly" - 1;

// The other end of the connection: grants token 5 and waits for the release.
void serve(int connection) {
    char request[acquire_bytes];
    const char granted[] = {0x12, 0, 0, 0, 0, 0, 0, 0, 5};
    if (::recv(connection, request, sizeof request, MSG_WAITALL) == sizeof request) {
        (void)!::write(connection, granted, sizeof granted);
    }
    while (::read(connection, request, 1) > 0) {
    }
    ::close(connection);
}

}  // namespace

int main() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return 1;
    }
    std::thread server{serve, ends[1]};
    monolock::client_options options;
    options.address = "tunnel:7070";
    options.dialer = [&](const std::string&, std::stop_token) { return ends[0]; };
    std::uint64_t seen = 0;
    int outcome = 1;
    try {
        monolock::client client{options};
        client.with_lock("nightly", std::chrono::seconds{10},
                         [&](std::stop_token, std::uint64_t token) { seen = token; });
        client.with_lock("", std::chrono::seconds{10}, {});
    } catch (const monolock::error& failed) {
        outcome = failed.code() == monolock::errc::empty_name ? 0 : 1;
    }
    options.tls = monolock::tls_options{.ca_file = "/nowhere/ca.pem"};
    std::error_code missing;
    (void)monolock::client{options}.acquire("nightly", std::chrono::seconds{10}, {}, missing);
    outcome = missing == monolock::errc::tls_files ? outcome : 1;
    server.join();
    std::printf("token %llu\n", static_cast<unsigned long long>(seen));
    return seen == 5 ? outcome : 1;
}
