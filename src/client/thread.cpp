#include "client/thread.hpp"

#include <csignal>

#include <memory>
#include <utility>

namespace monolock::detail {

namespace {

void* run(void* raw) {
    const std::unique_ptr<std::function<void()>> job{static_cast<std::function<void()>*>(raw)};
    (*job)();
    return nullptr;
}

}  // namespace

std::optional<pthread_t> start_thread(std::function<void()> job) {
    auto holder = std::make_unique<std::function<void()>>(std::move(job));
    sigset_t all{};
    sigset_t before{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
    pthread_t thread{};
    const int refused = pthread_create(&thread, nullptr, &run, holder.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (refused != 0) {
        return std::nullopt;
    }
    static_cast<void>(holder.release());  // the thread owns it now
    return thread;
}

bool start_detached_thread(std::function<void()> job) {
    const auto thread = start_thread(std::move(job));
    if (thread) {
        pthread_detach(*thread);
    }
    return thread.has_value();
}

}  // namespace monolock::detail
