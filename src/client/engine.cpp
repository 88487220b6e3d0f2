#include "client/engine.hpp"

#include <unistd.h>

#include "client/thread.hpp"
#include "monolock/error.hpp"

namespace monolock::detail {

namespace {

[[noreturn]] void refuse(const std::string& detail) {
    throw error{make_error_code(errc::thread_unavailable), stage::preparing, detail};
}

std::shared_ptr<reactor> make_reactor() {
    try {
        return std::make_shared<reactor>();
    } catch (const std::system_error& failed) {
        refuse(failed.what());
    }
}

}  // namespace

engine::engine(const std::shared_ptr<const target>& to)
    : loop_{make_reactor()}, ways_{std::make_shared<routes>(loop_, *to)}, process_{::getpid()} {
    // The thread's own share of the reactor: it outlives the engine if a callback ends that, and in
    // a forked child, where nobody gives this share back, the reactor is never destroyed.
    const auto thread = start_thread([loop = loop_] { loop->run(); });
    if (!thread) {
        refuse({});
    }
    thread_ = *thread;
}

bool engine::runs_here() const noexcept {
    return process_ == ::getpid() && pthread_equal(thread_, pthread_self()) != 0;
}

engine::~engine() {
    if (process_ != ::getpid()) {
        return;
    }
    loop_->stop();
    if (runs_here()) {
        pthread_detach(thread_);
    } else {
        pthread_join(thread_, nullptr);
    }
}

}  // namespace monolock::detail
