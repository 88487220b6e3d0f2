#include "cli/admin/watch.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cli/admin/admin_api.hpp"
#include "cli/admin/lock_text.hpp"
#include "cli/admin/report.hpp"
#include "cli/admin/screen.hpp"
#include "cli/admin/watch_interrupts.hpp"
#include "cli/colour.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "config/glob.hpp"

namespace monolock::cli {

namespace {

constexpr std::chrono::seconds redraw_interval{2};

// Standard output takes no more; errno says whether its reader went away.
class output_ended : public std::exception {
public:
    output_ended() noexcept : output_ended{errno == EPIPE} {}
    explicit output_ended(bool reader_gone) noexcept : reader_gone_{reader_gone} {}
    [[nodiscard]] bool is_reader_gone() const noexcept { return reader_gone_; }

private:
    bool reader_gone_;
};

std::string painted(const std::string& line, colour how, bool coloured) {
    return (coloured ? std::string{begin_of(how)} + line + std::string{end_of(how)} : line) + "\n";
}

// --- on a terminal

class screen_watch {
public:
    explicit screen_watch(const locks_options& told)
        : told_{told},
          interrupts_{signals},
          channel_{told.admin, {}, interrupts_.descriptor()},
          coloured_{is_standard_output_coloured()} {}

    // Until a signal comes that ends it: which.
    [[nodiscard]] int run() {
        while (true) {
            try {
                // Who cannot be reached to begin with is told of as without a watch.
                const std::string lines = screen_ ? fetch_or_explain() : fetch();
                if (!screen_) {
                    screen_.emplace();
                }
                if (!interrupts_.print(frame_of(lines, screen_line_count()))) {
                    throw output_ended{};
                }
                interrupts_.sleep(redraw_interval);
            } catch (const interrupted&) {
                if (const auto end = heed()) {
                    screen_.reset();
                    return *end;
                }
            }
        }
    }

private:
    static constexpr std::array signals{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                        SIGTSTP, SIGCONT, SIGWINCH};

    std::string fetch() {
        admin_api api{channel_};
        const json info = api.info();
        const std::size_t height = screen_line_count();
        constexpr std::size_t other_lines = 4;  // title, blank, headings, and that there is more
        const json listing =
            api.first_locks(told_.match, height > other_lines ? height - other_lines : 1);
        const auto locks = locks_from(listing);
        body_ = locks.empty() ? no_locks_text(told_.match) : locks_text(locks, coloured_);
        if (next_page_from(listing)) {
            body_ += "... and more; --match shows fewer\n";
        }
        return painted(word(told_.admin) + ": " + summary(info), colour::bold, coloured_) + "\n" +
               body_;
    }

    // What was seen last stays, under what is wrong now.
    std::string fetch_or_explain() {
        try {
            return fetch();
        } catch (const admin_error& failed) {
            return painted(failed.what() + std::string{"; trying again"}, colour::red, coloured_) +
                   "\n" + body_;
        }
    }

    // The signal that came and is to end it; for the others all is drawn anew.
    [[nodiscard]] std::optional<int> heed() {
        if (watch_interrupts::is_output_closed()) {
            throw output_ended{true};
        }
        while (const auto number = interrupts_.take()) {
            if (*number == SIGTSTP) {
                const bool shown = screen_.has_value();
                screen_.reset();
                watch_interrupts::suffer(SIGTSTP);
                if (shown) {
                    screen_.emplace();
                }
            } else if (*number != SIGCONT && *number != SIGWINCH) {
                return number;
            }
        }
        return std::nullopt;
    }

    const locks_options& told_;
    watch_interrupts interrupts_;
    admin_channel channel_;
    bool coloured_;
    std::string body_;
    std::optional<own_screen> screen_;  // from the first answer on
};

// --- for a reader of lines

class line_watch {
public:
    explicit line_watch(const locks_options& told)
        : told_{told},
          interrupts_{{}},
          channel_{told.admin, {}, interrupts_.descriptor()},
          coloured_{!told.json && is_standard_output_coloured()} {}

    // Until something fails.
    [[noreturn]] void run() {
        // Changes are told from the first event on, so nothing falls between them and the listing.
        channel_.begin_events("/api/events");
        static_cast<void>(channel_.next_event());
        show_held();
        while (true) {
            take(channel_.next_event());
        }
    }

private:
    void show_held() {
        known_.clear();
        const json listing = admin_api{channel_}.locks(told_.match);
        for (const json& each : listing.at("locks")) {
            const lock_facts lock = lock_from(each);
            if (lock.holder) {
                known_.insert(lock.holder->token);
                show(told_.json ? to_line(held_document(lock)) : held_text(lock));
            }
        }
    }

    static json held_document(const lock_facts& lock) {
        const holder_facts& holder = *lock.holder;
        return json::object({{"event", "held"},
                             {"time", holder.since},
                             {"name", lock.name},
                             {"id", holder.id},
                             {"identity", holder.identity},
                             {"remote_addr", holder.remote_addr},
                             {"token", holder.token},
                             {"held_ms", holder.held.count()}});
    }

    void take(const server_event& event) {
        if (event.kind == "change") {
            take_change(parse_object(event.data));
        } else if (event.kind == "lost") {
            // So much happened that the server did not keep it. What there is now comes anew.
            const auto count = lost_from(parse_object(event.data));
            show(told_.json ? to_line(json::object({{"event", "lost"}, {"changes", count}}))
                            : "lost " + std::to_string(count) + " changes\n");
            show_held();
        }
    }

    void take_change(const json& document) {
        const change_facts change = change_from(document);
        if (told_.match && !config::matches_glob(*told_.match, change.name)) {
            return;
        }
        if (change.event == "granted" && known_.erase(change.token) > 0) {
            return;  // shown as held
        }
        known_.erase(change.token);
        show(told_.json ? to_line(document) : change_text(change, coloured_));
    }

    void show(const std::string& line) const {
        if (!interrupts_.print(line)) {
            throw output_ended{};
        }
    }

    const locks_options& told_;
    watch_interrupts interrupts_;  // only of the output: signals do what they do
    admin_channel channel_;
    bool coloured_;
    std::set<std::uint64_t> known_;  // tokens that were shown as held
};

bool has_screen() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* const kind = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
           kind != std::string_view{"dumb"};
}

int watch(const locks_options& told) {
    if (told.json || !has_screen()) {
        line_watch{told}.run();
    }
    const int number = screen_watch{told}.run();
    watch_interrupts::suffer(number);
    return of_signal(number);
}

}  // namespace

int run_watch(const locks_options& told) {
    if (watch_interrupts::is_output_closed()) {
        // Nobody went away: there never was a reader. By the signal, unless it is ignored.
        watch_interrupts::suffer(SIGPIPE);
        return output_failed();
    }
    std::string why;
    exit_code status = exit_code::refused;
    try {
        return watch(told);
    } catch (const output_ended& end) {
        if (end.is_reader_gone()) {
            return 0;
        }
        return output_failed();
    } catch (const interrupted&) {
        return 0;  // nobody reads any more
    } catch (const bad_answer& failed) {
        why = word(told.admin) + ": " + failed.what();
    } catch (const admin_error& failed) {
        why = failed.what();
        status = failed.status();
    }
    return report_failure(told.json, status, why, error_document(why));
}

}  // namespace monolock::cli
