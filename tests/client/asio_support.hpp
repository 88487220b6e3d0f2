#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "monolock/asio.hpp"
#include "support.hpp"

namespace monolock::testing {

namespace net = boost::asio;
using asio_client = monolock::asio::client;
using asio_lock = monolock::asio::lock;

// An io_context that runs on threads of its own while the test plays the server.
class running_context {
public:
    explicit running_context(int threads = 1) : work_{net::make_work_guard(io)} {
        for (int each = 0; each < threads; ++each) {
            threads_.emplace_back([this] { io.run(); });
        }
    }
    running_context(const running_context&) = delete;
    running_context& operator=(const running_context&) = delete;
    ~running_context() {
        io.stop();
        join();
    }

    // Returns once the context has nothing more to do.
    void join() {
        work_.reset();
        for (auto& each : threads_) {
            if (each.joinable()) {
                each.join();
            }
        }
    }

    net::io_context io;

private:
    net::executor_work_guard<net::io_context::executor_type> work_;
    std::vector<std::thread> threads_;
};

[[nodiscard]] inline client_options options_for(const std::string& address) {
    client_options options;
    options.address = address;
    return options;
}

}  // namespace monolock::testing
