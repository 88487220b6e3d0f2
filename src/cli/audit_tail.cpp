#include "cli/audit_tail.hpp"

#include <poll.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <system_error>
#include <variant>

#include "cli/age.hpp"
#include "cli/audit_input.hpp"
#include "cli/colour.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "telemetry/audit_reader.hpp"
#include "telemetry/escape.hpp"
#include "telemetry/line_splitter.hpp"

namespace monolock::cli {

namespace {

constexpr int look_again_ms = 200;

std::string token_text(protocol::fencing_token token) {
    return "  token=" + std::to_string(token.value);
}

struct details {
    std::string operator()(const telemetry::audit_granted& what) const {
        return token_text(what.token) + " waited=" + format_age(what.wait);
    }
    std::string operator()(const telemetry::audit_released& what) const {
        return token_text(what.token) + " held=" + format_age(what.held) + " " +
               std::string{what.reason};
    }
    std::string operator()(const telemetry::audit_force_release& what) const {
        return token_text(what.token);
    }
    std::string operator()(const telemetry::audit_denied& /*what*/) const { return ""; }
    std::string operator()(const telemetry::audit_kick_waiter& /*what*/) const { return ""; }
};

colour colour_of(const telemetry::audit_event& event) {
    if (std::holds_alternative<telemetry::audit_granted>(event)) {
        return colour::plain;
    }
    const auto* const end = std::get_if<telemetry::audit_released>(&event);
    return end != nullptr && end->reason == "graceful" ? colour::plain : colour::yellow;
}

std::string text_of(const telemetry::audit_record& record) {
    std::string out;
    telemetry::append_rfc3339(out, record.time);
    std::string event{telemetry::name_of(record.event)};
    event.resize(13, ' ');
    out += "  " + event + "  ";
    telemetry::append_logfmt_value(out, record.lock);
    out += std::visit(details{}, record.event) + "  ";
    telemetry::append_logfmt_value(out, record.remote_addr);
    if (!record.identity.empty()) {
        out += ' ';
        telemetry::append_logfmt_value(out, record.identity);
    }
    return out;
}

// Printing each block at once keeps a terminal quick and a pipe full.
class printer {
public:
    explicit printer(bool json) : json_{json}, coloured_{is_standard_output_coloured()} {}

    [[nodiscard]] bool print_lines(std::string_view block) {
        std::string out;
        lines_.feed(block, [&](std::string_view line) {
            out += shown(line);
            return true;
        });
        return print(out);
    }
    [[nodiscard]] bool print_unfinished() const {
        return lines_.rest().empty() || print(shown(lines_.rest()));
    }
    // How much there is of a line that has no end yet.
    [[nodiscard]] std::size_t unfinished() const noexcept { return lines_.rest().size(); }
    void drop_unfinished() noexcept { lines_.drop_rest(); }

private:
    [[nodiscard]] std::string shown(std::string_view line) const {
        return json_ ? std::string{line} + "\n" : format_audit_line(line, coloured_);
    }

    bool json_;
    bool coloured_;
    telemetry::line_splitter lines_;
};

// What a path has named one after the other, as rotations leave it: the server writes on to a file
// that was moved away or removed, until it is told to open the path anew. It changes over once, and
// then to the newest, so a file is complete when a later one has its first byte.
class rotated_files {
public:
    explicit rotated_files(const std::string& path) { files_.emplace_back(path); }

    [[nodiscard]] audit_input& oldest() noexcept { return files_.front(); }
    [[nodiscard]] bool is_oldest_complete() const {
        return std::any_of(std::next(files_.begin()), files_.end(),
                           [](const audit_input& later) { return later.is_begun(); });
    }
    void drop_oldest() { files_.pop_front(); }

    // Takes up the file that the path names now. Between a move and a reopen there may be none.
    void look() {
        const std::string& path = oldest().path();
        if (path == "-" || std::any_of(files_.begin(), files_.end(),
                                       [](const audit_input& one) { return one.is_in_place(); })) {
            return;
        }
        try {
            files_.emplace_back(path);
        } catch (const std::system_error&) {
            return;
        }
        if (files_.size() > files_max) {
            files_.erase(std::next(files_.begin()));
        }
    }

private:
    // So many are empty only where nothing happens, or where the server is never told to reopen and
    // writes to the oldest. Which of the others is let go makes no difference to either.
    static constexpr std::size_t files_max = 8;

    std::deque<audit_input> files_;  // never empty
};

}  // namespace

std::string format_audit_line(std::string_view line, bool coloured) {
    telemetry::audit_reader reader;
    const auto read = reader.read(line);
    std::string text;
    colour paint = colour::red;
    if (const auto* const record = std::get_if<telemetry::audit_record>(&read)) {
        text = text_of(*record);
        paint = colour_of(record->event);
    } else if (const auto* const gap = std::get_if<telemetry::audit_gap>(&read)) {
        telemetry::append_rfc3339(text, gap->time);
        text += "  " + std::string{telemetry::audit_gap_name} +
                "      lost=" + std::to_string(gap->lost);
    } else {
        text = telemetry::quoted(line);
    }
    if (!coloured) {
        return text + '\n';
    }
    return std::string{begin_of(paint)} + text + std::string{end_of(paint)} + '\n';
}

int run_audit_tail(const audit_tail_options& options) {
    rotated_files files{options.file};
    printer out{options.json};
    if (files.oldest().is_regular()) {
        using enum audit_input::unfinished_line;
        files.oldest().seek_lines_before_end(options.lines,
                                             options.follow ? stands_behind : counts);
    }
    while (true) {
        if (options.follow) {
            files.look();
        }
        const bool complete = files.is_oldest_complete();  // before it is read to its end
        const std::string_view block = files.oldest().read();
        if (!out.print_lines(block)) {
            return output_failed();
        }
        if (!block.empty()) {
            continue;
        }
        if (!options.follow) {
            return out.print_unfinished() ? 0 : output_failed();
        }
        if (files.oldest().goes_back(out.unfinished())) {
            out.drop_unfinished();
        } else if (complete) {
            files.drop_oldest();
            out.drop_unfinished();
        } else {
            ::poll(nullptr, 0, look_again_ms);
        }
    }
}

}  // namespace monolock::cli
