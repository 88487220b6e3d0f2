#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/parsed.hpp"
#include "server/logger.hpp"
#include "server/loop.hpp"

namespace monolock::server {

// What SIGHUP does: reads again what can be read again, part by part. The parts are independent;
// one that fails keeps what it had. Everything runs on the control loop's thread.
class reload {
public:
    // Puts in force what the part's files say, and says in a few words what that is; or changes
    // nothing, and says everything that is wrong.
    using loader = std::function<config::checked<std::string>()>;

    // Requests that come faster are answered together, so that a storm of them costs little.
    static constexpr std::chrono::milliseconds pause{100};

    // The log must outlive this object.
    reload(loop& on, logger& log) : log_{&log}, timer_{on.get_executor()} {}

    // `name` is a literal, the part's name in the log and in metrics.
    void add(std::string_view name, loader load);

    // Hears of every load: just before it, and after it, with the names of the parts that failed.
    struct observer {
        std::function<void()> begins;
        std::function<void(const std::vector<std::string_view>& failed)> ended;
    };
    // At most once, before the first request.
    void observe(observer who) { observer_ = std::move(who); }

    // Calls back, on the control loop, when what the parts have put in force is so everywhere: of
    // what is not yet, nobody is to be told that it is. At once unless something else is said here,
    // before the first request. After `patience` it is told anyway.
    using callback = std::function<void()>;
    void settle_by(std::function<void(callback)> how, std::chrono::milliseconds patience);

    // Every part is loaded once more, by a load that begins after this call: at once, or when the
    // last one is `pause` ago. Each part writes one line to the log.
    void request();

    // No load begins any more, and requests are answered with a line in the log.
    void close();

    // How often the part could not be loaded. Zero for a name that was not added.
    [[nodiscard]] std::uint64_t failures(std::string_view name) const noexcept;

private:
    enum class stage { idle, waiting, settling, closed };

    struct part {
        std::string_view name;
        loader load;
        std::uint64_t failures = 0;
    };

    struct outcome {
        const part* of;
        config::checked<std::string> what;
    };

    void load_all();
    void tell(std::uint64_t load);
    [[nodiscard]] bool tell_of(const outcome& which);

    logger* log_;
    loop_timer timer_;
    std::vector<part> parts_;
    observer observer_{.begins = [] {}, .ended = [](const auto&) {}};
    std::function<void(callback)> settle_ = [](const callback& settled) { settled(); };
    std::chrono::milliseconds patience_{0};
    std::vector<outcome> outcomes_;  // that are not told yet
    std::uint64_t loads_ = 0;        // counts on when one is told, so that each is told once
    bool again_ = false;             // asked for while the last load settles
    std::chrono::steady_clock::time_point next_{};  // no load before
    stage stage_ = stage::idle;
};

}  // namespace monolock::server
