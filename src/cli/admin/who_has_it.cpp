#include "cli/admin/who_has_it.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/admin/admin_api.hpp"
#include "cli/admin/lock_text.hpp"

namespace monolock::cli {

namespace {

// A queue of 50,000. What is read beyond the time in which an answer may come is time of the
// caller.
constexpr std::size_t answer_bytes_max = std::size_t{8} * 1024 * 1024;

// As the server prints a peer; nothing for what is no connection.
std::optional<std::string> name_of(int fd) {
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0 ||
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
        return std::nullopt;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (local.ss_family == AF_INET) {
        sockaddr_in address{};
        std::memcpy(&address, &local, sizeof address);
        ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
        return std::string{text.data()} + ":" + std::to_string(ntohs(address.sin_port));
    }
    if (local.ss_family == AF_INET6) {
        sockaddr_in6 address{};
        std::memcpy(&address, &local, sizeof address);
        ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
        return "[" + std::string{text.data()} + "]:" + std::to_string(ntohs(address.sin6_port));
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::string> own_names() {
    // Clients of a Unix socket are known by their process.
    std::vector<std::string> out{"unix:pid=" + std::to_string(::getpid()) +
                                 ",uid=" + std::to_string(::geteuid())};
    std::error_code no_proc;
    for (std::filesystem::directory_iterator each{"/proc/self/fd", no_proc}, end; each != end;
         each.increment(no_proc)) {
        const std::string text = each->path().filename().string();
        int fd = -1;
        std::from_chars(text.data(), text.data() + text.size(), fd);
        if (auto name = name_of(fd)) {
            out.push_back(*std::move(name));
        }
    }
    return out;
}

std::optional<std::string> who_has_it(const std::string& admin, const std::string& lock_name,
                                      std::chrono::steady_clock::time_point give_up_at,
                                      int interrupt) noexcept {
    try {
        admin_channel channel{
            admin, {.give_up_at = give_up_at, .answer_bytes_max = answer_bytes_max}, interrupt};
        return owner_and_place(lock_from(admin_api{channel}.show(lock_name)), own_names());
    } catch (...) {
        return std::nullopt;
    }
}

}  // namespace monolock::cli
