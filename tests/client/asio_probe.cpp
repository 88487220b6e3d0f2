// An Asio client as a process, for the black-box tests:
//
//     asio_probe ADDRESS NAME LEASE_MS [retry] [CA [CERTIFICATE KEY]]
//
// Says `queued` and `held TOKEN`, then `lost CODE` or, after a line on its input, `released`; or
// `failed CODE`.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "monolock/asio.hpp"

namespace {

namespace net = boost::asio;
using boost::system::error_code;

class probe {
public:
    probe(net::io_context& io, const monolock::client_options& options)
        : locks_{io, options}, input_{io, ::dup(STDIN_FILENO)} {}

    void ask(const std::string& name, std::chrono::milliseconds lease, bool retry) {
        locks_.async_acquire(
            name, lease, {.retry = retry}, [this](error_code failed, monolock::asio::lock granted) {
                if (failed) {
                    std::cout << "failed " << std::error_code{failed}.value() << std::endl;
                    std::cerr << granted.failure()->what() << std::endl;
                    input_.close();
                    return;
                }
                hold(std::move(granted));
            });
    }

private:
    void hold(monolock::asio::lock granted) {
        held_ = std::move(granted);
        std::cout << "held " << held_.token() << std::endl;
        held_.async_wait_for_loss([this](error_code released, std::error_code why) {
            if (!released) {
                std::cout << "lost " << why.value() << std::endl;
                input_.close();
            }
        });
        input_.async_wait(net::posix::stream_descriptor::wait_read, [this](error_code closed) {
            if (!closed) {
                held_.release();
                std::cout << "released" << std::endl;
            }
        });
    }

    monolock::asio::client locks_;
    net::posix::stream_descriptor input_;
    monolock::asio::lock held_;
};

}  // namespace

int main(int count, char** raw) {
    std::vector<std::string> words{raw, raw + count};
    if (words.size() < 4) {
        return 2;
    }
    const bool retry = words.size() > 4 && words[4] == "retry";
    if (retry) {
        words.erase(words.begin() + 4);
    }
    monolock::client_options options;
    options.address = words[1];
    if (words.size() > 4) {
        words.resize(7);
        options.tls = monolock::tls_options{
            .ca_file = words[4], .certificate_file = words[5], .key_file = words[6]};
    }
    options.on_stage = [](std::string_view, monolock::stage entered) {
        if (entered == monolock::stage::queued) {
            std::cout << "queued" << std::endl;
        }
    };
    net::io_context io;
    probe one{io, options};
    one.ask(words[2], std::chrono::milliseconds{std::stol(words[3])}, retry);
    io.run();
}
