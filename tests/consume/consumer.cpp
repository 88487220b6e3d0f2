// A program of somebody else: holds a lock of the server at argv[1], sees that nobody else can have
// it meanwhile, and that it is free again afterwards.

#include <chrono>
#include <cstdint>
#include <iostream>

#include <monolock/monolock.hpp>

int main(int argc, char** argv) {
    using namespace std::chrono_literals;
    if (argc != 2) {
        std::cerr << "usage: consumer ADDRESS\n";
        return 2;
    }
    try {
        monolock::client client{{.address = argv[1]}};
        std::uint64_t first = 0;
        bool excluded = false;
        client.with_lock("nightly", 10s, [&](std::stop_token, std::uint64_t token) {
            first = token;
            excluded = !client.try_acquire("nightly", 10s);
        });
        const monolock::lock again = client.acquire("nightly", 10s);
        std::cout << "tokens " << first << ' ' << again.token() << '\n';
        // Exceptions and categories are those of the library, wherever they were compiled.
        std::error_code wrong;
        (void)client.try_acquire("", 10s, {}, wrong);
        const bool same_category = wrong == monolock::errc::empty_name;
        return excluded && again.token() > first && same_category ? 0 : 1;
    } catch (const monolock::error& failed) {
        std::cerr << "consumer: " << failed.what() << '\n';
        return 1;
    }
}
