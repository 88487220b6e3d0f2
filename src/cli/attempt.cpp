#include "cli/attempt.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::cli {

namespace {

lock acquire(client& through, const run_options& options, const std::stop_token& stop) {
    if (options.wait == nanoseconds{0}) {
        return through.try_acquire(options.name, options.lease, stop);
    }
    // The limit of a wait is the guardian's to watch: it holds over all retries together.
    return options.retry ? through.acquire_retry(options.name, options.lease, stop)
                         : through.acquire(options.name, options.lease, stop);
}

// One line, without quotes around it.
std::string escaped(std::string_view text) {
    const std::string quoted = telemetry::quoted(text);
    return quoted.substr(1, quoted.size() - 2);
}

// What the library knows beyond the code. It names the server, or all of them, if there are
// several.
std::string describe(const error& failure, const run_options& options) {
    if (has_server_list(options)) {
        return escaped(failure.what());
    }
    const std::string_view detail = failure.detail();
    std::string text = options.server + ": " + failure.code().message();
    if (!detail.empty() && detail != options.server) {
        text += ": " + escaped(detail);
    }
    return text;
}

}  // namespace

attempt::attempt(client& through, const run_options& options)
    : done_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!done_) {
        throw std::system_error{errno, std::system_category(), "eventfd"};
    }
    thread_ = std::thread{[this, &through, &options] { run(through, options); }};
}

attempt::~attempt() {
    stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void attempt::run(client& through, const run_options& options) noexcept {
    try {
        outcome_.held = acquire(through, options, stop_.get_token());
    } catch (const server_error& refusal) {
        outcome_.failure = refusal.code();
        outcome_.detail = options.server + ": the server says " +
                          telemetry::quoted(refusal.reason()) + " (" + refusal.code().message() +
                          ")";
    } catch (const error& failure) {
        outcome_.failure = failure.code();
        outcome_.detail = describe(failure, options);
    } catch (const std::system_error& failure) {
        outcome_.failure = failure.code();
        outcome_.detail = options.server + ": " + failure.code().message();
    } catch (const std::exception&) {
        outcome_.failure = std::make_error_code(std::errc::not_enough_memory);
    }
    eventfd_write(done_.get(), 1);
}

attempt::outcome attempt::take() {
    thread_.join();
    return std::move(outcome_);
}

}  // namespace monolock::cli
