// fault_relay --seed N NAMESPACE:DEVICE NAMESPACE:DEVICE
//
// Joins two network namespaces by a bad network: makes a TUN device in each, and carries packets
// from one to the other as two impairments (impairment.hpp) say, one for each direction. Needs
// CAP_NET_ADMIN and CAP_SYS_ADMIN. Whoever starts it gives the devices their addresses.
//
// It says "ready" once the devices are there. Then each line of its input is a command, answered by
// a line:
//
//     both|there|back KEY=VALUE…   what a direction is like from now on; `there` is from the first
//                                  to the second. Keys: delay_us, jitter_us, lost, doubled,
//                                  overtaken (parts of a million), held_back_us, cut (0 or 1). What
//                                  is not named is zero.  Answer: ok
//     counts                       Answer: one JSON object, {"there": {…}, "back": {…}}
//
// It ends at the end of its input.

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "faults/impairment.hpp"
#include "posix/descriptor.hpp"

namespace monolock::faults {

namespace {

constexpr std::size_t packet_bytes_max = 65'536;

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

// A TUN device stays in the namespace in which it was made, whoever reads it.
posix::descriptor open_device(std::string_view place) {
    const std::size_t colon = place.find(':');
    if (colon == std::string_view::npos) {
        throw std::invalid_argument{"not NAMESPACE:DEVICE: " + std::string{place}};
    }
    const std::string path = "/run/netns/" + std::string{place.substr(0, colon)};
    const posix::descriptor inside{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!inside || ::setns(inside.get(), CLONE_NEWNET) != 0) {
        fail(path);
    }
    posix::descriptor device{::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    if (!device) {
        fail("/dev/net/tun");
    }
    ifreq request{};
    const std::string_view name = place.substr(colon + 1);
    std::copy_n(name.data(), std::min(name.size(), sizeof request.ifr_name - 1), request.ifr_name);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (::ioctl(device.get(), TUNSETIFF, &request) != 0) {
        fail("the device " + std::string{name});
    }
    return device;
}

instant clock_reading() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

struct direction {
    int from;
    int to;
    impairment network;

    void take() {
        std::vector<std::byte> buffer(packet_bytes_max);
        while (true) {
            const ssize_t got = ::read(from, buffer.data(), buffer.size());
            if (got <= 0) {
                return;
            }
            network.offer({buffer.begin(), buffer.begin() + got}, clock_reading());
        }
    }

    void give() {
        while (const auto due = network.depart(clock_reading())) {
            // A device that is down, or full, drops it: it is a network.
            [[maybe_unused]] const ssize_t sent = ::write(to, due->data(), due->size());
        }
    }
};

// ---- commands

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole ? std::optional{number} : std::nullopt;
}

bool set(impairments& how, std::string_view key, std::uint64_t value) {
    const auto span = std::chrono::microseconds{value};
    const auto share = static_cast<simulation::per_million>(value);
    if (key == "delay_us") {
        how.delay = span;
    } else if (key == "jitter_us") {
        how.jitter = span;
    } else if (key == "held_back_us") {
        how.held_back = span;
    } else if (key == "lost") {
        how.lost = share;
    } else if (key == "doubled") {
        how.doubled = share;
    } else if (key == "overtaken") {
        how.overtaken = share;
    } else if (key == "cut") {
        how.cut = value != 0;
    } else {
        return false;
    }
    return true;
}

std::string text_of(const impairment::counters& counts) {
    std::ostringstream text;
    text << R"({"offered":)" << counts.offered << R"(,"left":)" << counts.left << R"(,"lost":)"
         << counts.lost << R"(,"doubled":)" << counts.doubled << R"(,"overtaken":)"
         << counts.overtaken << R"(,"cut":)" << counts.cut << R"(,"overflowed":)"
         << counts.overflowed << '}';
    return text.str();
}

class relay {
public:
    relay(int first, int second, std::uint64_t seed)
        : there_{first, second, impairment{seed}}, back_{second, first, impairment{~seed}} {}

    // Until the end of the input.
    void run() {
        while (true) {
            std::array<pollfd, 3> on{
                {{STDIN_FILENO, POLLIN, 0}, {there_.from, POLLIN, 0}, {back_.from, POLLIN, 0}}};
            const timespec wait = until_next();
            if (::ppoll(on.data(), on.size(), &wait, nullptr) < 0 && errno != EINTR) {
                fail("poll");
            }
            there_.take();
            back_.take();
            there_.give();
            back_.give();
            if (on[0].revents != 0 && !read_commands()) {
                return;
            }
        }
    }

private:
    [[nodiscard]] timespec until_next() const {
        instant wait = std::chrono::hours{1};
        for (const direction* one : {&there_, &back_}) {
            if (const auto when = one->network.next_departure()) {
                wait = std::min(wait, std::max(*when - clock_reading(), instant{0}));
            }
        }
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
        return {seconds.count(), (wait - seconds).count()};
    }

    bool read_commands() {
        std::array<char, 4096> bytes{};
        const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (got <= 0) {
            return false;
        }
        input_.append(bytes.data(), static_cast<std::size_t>(got));
        for (std::size_t end = input_.find('\n'); end != std::string::npos;
             end = input_.find('\n')) {
            std::cout << obey(input_.substr(0, end)) << std::endl;
            input_.erase(0, end + 1);
        }
        return true;
    }

    std::string obey(const std::string& line) {
        std::istringstream words{line};
        std::string which;
        words >> which;
        if (which == "counts") {
            return R"({"there":)" + text_of(there_.network.counts()) + R"(,"back":)" +
                   text_of(back_.network.counts()) + '}';
        }
        impairments how;
        for (std::string word; words >> word;) {
            const std::size_t sign = word.find('=');
            const auto value =
                sign == std::string::npos ? std::nullopt : number_of(word.substr(sign + 1));
            if (!value || !set(how, word.substr(0, sign), *value)) {
                return "not understood: " + word;
            }
        }
        if (which != "there" && which != "back" && which != "both") {
            return "not understood: " + which;
        }
        if (which != "back") {
            there_.network.become(how);
        }
        if (which != "there") {
            back_.network.become(how);
        }
        return "ok";
    }

    direction there_;
    direction back_;
    std::string input_;
};

int run(const std::vector<std::string_view>& words) {
    const auto seed =
        words.size() == 4 && words[0] == "--seed" ? number_of(words[1]) : std::nullopt;
    if (!seed) {
        std::cerr << "usage: fault_relay --seed N NAMESPACE:DEVICE NAMESPACE:DEVICE\n";
        return 2;
    }
    try {
        const posix::descriptor first = open_device(words[2]);
        const posix::descriptor second = open_device(words[3]);
        std::cout << "ready" << std::endl;
        relay{first.get(), second.get(), *seed}.run();
    } catch (const std::exception& why) {
        std::cerr << "fault_relay: " << why.what() << '\n';
        return 1;
    }
    return 0;
}

}  // namespace

}  // namespace monolock::faults

int main(int argc, char** argv) {
    return monolock::faults::run({argv + 1, argv + argc});
}
