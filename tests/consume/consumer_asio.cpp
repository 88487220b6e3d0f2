// A program of somebody else, on Boost.Asio: holds a lock of the server at argv[1], twice.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>

#include <monolock/asio.hpp>

namespace net = boost::asio;

namespace {

net::awaitable<std::uint64_t> token_of_a_turn(const monolock::asio::client& locks) {
    std::uint64_t seen = 0;
    const auto work = [&](const monolock::asio::lock& held) -> net::awaitable<void> {
        seen = held.token();
        co_return;
    };
    co_await monolock::asio::with_lock(locks, "nightly", std::chrono::seconds{10}, work);
    co_return seen;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: consumer_asio ADDRESS\n";
        return 2;
    }
    try {
        std::uint64_t tokens[2] = {};
        for (std::uint64_t& token : tokens) {
            net::io_context io;
            const monolock::asio::client locks{io, {.address = argv[1]}};
            auto taken = net::co_spawn(io, token_of_a_turn(locks), net::use_future);
            io.run();
            token = taken.get();
        }
        std::cout << "tokens " << tokens[0] << ' ' << tokens[1] << '\n';
        return 0;
    } catch (const std::exception& failed) {
        std::cerr << "consumer_asio: " << failed.what() << '\n';
        return 1;
    }
}
