#include "support/etcd_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "posix/descriptor.hpp"

namespace monolock::test {

namespace {

using namespace std::chrono_literals;

constexpr const char* program = "etcd";

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return where;
}

// Free now. Who starts a program on it tries again if somebody else was faster.
std::vector<std::uint16_t> free_ports(std::size_t count) {
    std::vector<posix::descriptor> held(count);
    std::vector<std::uint16_t> ports;
    for (posix::descriptor& each : held) {
        each = posix::descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_in where = loopback(0);
        socklen_t size = sizeof where;
        auto* const address = reinterpret_cast<sockaddr*>(&where);
        if (::bind(each.get(), address, size) != 0 ||
            ::getsockname(each.get(), address, &size) != 0) {
            throw std::system_error{errno, std::system_category(), "no free port"};
        }
        ports.push_back(ntohs(where.sin_port));
    }
    return ports;
}

struct http_answer {
    int status = 0;  // 0: there is none
    std::string body;
};

// One request on a connection of its own, until the server closes it.
http_answer ask(std::uint16_t port, const std::string& request) {
    const posix::descriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const sockaddr_in where = loopback(port);
    std::string answer;
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 &&
        ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size())) {
        char piece[4096];
        ssize_t size = 0;
        while ((size = ::recv(fd.get(), piece, sizeof piece, 0)) > 0) {
            answer.append(piece, static_cast<std::size_t>(size));
        }
    }
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == std::string::npos) {
        return {};
    }
    return {.status = std::atoi(answer.c_str() + answer.find(' ')), .body = answer.substr(end + 4)};
}

std::string url(const std::string& scheme, std::uint16_t port) {
    return scheme + "://127.0.0.1:" + std::to_string(port);
}

pid_t start_program(std::vector<std::string> arguments, const std::string& log) {
    std::vector<char*> words;
    std::ranges::transform(arguments, std::back_inserter(words),
                           [](std::string& each) { return each.data(); });
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
        // A test that crashes takes it along.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (::getppid() == parent && ::dup2(out, STDOUT_FILENO) >= 0 &&
            ::dup2(out, STDERR_FILENO) >= 0) {
            ::execvp(words[0], words.data());
        }
        ::_exit(127);
    }
    return pid;
}

void end_program(pid_t& pid) noexcept {
    if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        pid = 0;
    }
}

bool has_ended(pid_t pid) {
    siginfo_t about{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           about.si_pid == pid;
}

}  // namespace

bool etcd_process::is_installed() {
    const char* const path = std::getenv("PATH");
    std::istringstream folders{path == nullptr ? "" : path};
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (::access((folder + "/" + program).c_str(), X_OK) == 0) {
            return true;
        }
    }
    return false;
}

etcd_process::etcd_process(etcd_wishes wishes) : wishes_{std::move(wishes)} {
    for (int tries = 0; tries < 3; ++tries) {
        start();
        if (all_become_well()) {
            return;
        }
        stop();
    }
    throw std::runtime_error{"etcd does not start: " + end_of_log()};
}

etcd_process::~etcd_process() {
    stop();
}

std::uint16_t etcd_process::port(std::size_t which) const {
    return members_.at(which).client;
}

void etcd_process::kill(std::size_t which) {
    end_program(members_.at(which).pid);
}

void etcd_process::start_again(std::size_t which) {
    members_.at(which).pid = start_program(arguments(which), folder_.path("log"));
    if (!all_become_well()) {
        throw std::runtime_error{"etcd does not start again: " + end_of_log()};
    }
}

std::string etcd_process::post(const std::string& path, const std::string& body) const {
    const http_answer got = ask(
        port(), "POST " + path +
                    " HTTP/1.0\r\nHost: etcd\r\nContent-Length: " + std::to_string(body.size()) +
                    (token_.empty() ? "" : "\r\nAuthorization: " + token_) + "\r\n\r\n" + body);
    if (got.status != 200) {
        throw std::runtime_error{path + ": " + std::to_string(got.status) + " " + got.body};
    }
    return got.body;
}

void etcd_process::start() {
    members_.assign(wishes_.members, {});
    std::vector<std::uint16_t> ports = free_ports(3 * wishes_.members);
    for (member& each : members_) {
        for (std::uint16_t* const port : {&each.client, &each.peer, &each.health}) {
            *port = ports.back();
            ports.pop_back();
        }
    }
    for (std::size_t index = 0; index < members_.size(); ++index) {
        std::filesystem::remove_all(folder_.path("m" + std::to_string(index)));
        members_[index].pid = start_program(arguments(index), folder_.path("log"));
    }
}

void etcd_process::stop() noexcept {
    for (member& each : members_) {
        end_program(each.pid);
    }
}

bool etcd_process::all_become_well() const {
    const auto limit = std::chrono::steady_clock::now() + 20s;
    return std::ranges::all_of(members_, [limit](const member& each) {
        while (ask(each.health, "GET /health HTTP/1.0\r\n\r\n").status != 200) {
            if (has_ended(each.pid) || std::chrono::steady_clock::now() > limit) {
                return false;
            }
            std::this_thread::sleep_for(5ms);
        }
        return true;
    });
}

std::vector<std::string> etcd_process::arguments(std::size_t index) const {
    const auto name = [](std::size_t of) { return "m" + std::to_string(of); };
    std::string cluster;
    for (std::size_t each = 0; each < members_.size(); ++each) {
        cluster += (each == 0 ? "" : ",") + name(each) + "=" + url("http", members_[each].peer);
    }
    const member& mine = members_[index];
    std::vector<std::string> all{
        program,
        "--name=" + name(index),
        "--data-dir=" + folder_.path(name(index)),
        "--listen-client-urls=" + url(wishes_.scheme, mine.client),
        "--advertise-client-urls=" + url(wishes_.scheme, mine.client),
        "--listen-peer-urls=" + url("http", mine.peer),
        "--initial-advertise-peer-urls=" + url("http", mine.peer),
        "--listen-metrics-urls=" + url("http", mine.health),
        "--initial-cluster=" + cluster,
        "--heartbeat-interval=10",
        "--election-timeout=100",
        "--unsafe-no-fsync",
        "--logger=zap",
        "--log-level=warn",
    };
    all.insert(all.end(), wishes_.flags.begin(), wishes_.flags.end());
    return all;
}

std::string etcd_process::end_of_log() const {
    std::ifstream file{folder_.path("log")};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    constexpr std::size_t shown = 2000;
    return text.substr(text.size() > shown ? text.size() - shown : 0);
}

}  // namespace monolock::test
