#include "cli/audit_tail.hpp"

#include <poll.h>

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
            out += json_ ? std::string{line} + "\n" : format_audit_line(line, coloured_);
            return true;
        });
        return print(out);
    }
    void begin_anew() noexcept { lines_.drop_rest(); }

private:
    bool json_;
    bool coloured_;
    telemetry::line_splitter lines_;
};

// Waits until the path names a file again: between a move and a reopen there may be none.
audit_input open_again(const std::string& path) {
    while (true) {
        try {
            return audit_input{path};
        } catch (const std::system_error&) {
            ::poll(nullptr, 0, look_again_ms);
        }
    }
}

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
    audit_input input{options.file};
    printer out{options.json};
    if (input.is_regular()) {
        input.seek_lines_before_end(options.lines);
    }
    while (true) {
        const std::string_view block = input.read();
        if (!out.print_lines(block)) {
            return output_failed();
        }
        if (!block.empty()) {
            continue;
        }
        if (!options.follow) {
            return 0;
        }
        if (input.is_replaced()) {
            // What the server still wrote to the old file, before it took the new one.
            ::poll(nullptr, 0, look_again_ms);
            for (auto last = input.read(); !last.empty(); last = input.read()) {
                if (!out.print_lines(last)) {
                    return output_failed();
                }
            }
            input = open_again(options.file);
            out.begin_anew();
        } else if (input.begins_anew()) {
            out.begin_anew();
        } else {
            ::poll(nullptr, 0, look_again_ms);
        }
    }
}

}  // namespace monolock::cli
