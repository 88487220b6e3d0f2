// Any bytes as an audit log: the same bytes whole and in pieces, or in two files, must mean the
// same, nothing that is read may be lost by writing it again, no allowance makes a wrong log out of
// a proven one, and neither does a crash that cuts it off anywhere.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/pieces.hpp"
#include "telemetry/audit_stats.hpp"
#include "telemetry/audit_verifier.hpp"
#include "telemetry/line_splitter.hpp"

namespace {

namespace telemetry = monolock::telemetry;
using monolock::fuzz::cut_input;
using monolock::fuzz::require;
using telemetry::audit_verifier;

struct outcome {
    std::uint64_t lines = 0;
    std::optional<std::string> broken;
};

// A verifier that takes files as their bytes come.
class verification {
public:
    explicit verification(audit_verifier::allowances allowed) : verifier_{allowed} {}

    template <class Feed>  // calls with each piece of the file while that returns true
    void take_file(Feed feed) {
        verifier_.begin_file("log");
        feed([this](std::string_view piece) {
            return !out_.broken && lines_.feed(piece, [this](std::string_view line) {
                return note(verifier_.take(line));
            });
        });
        if (!out_.broken) {
            note(verifier_.end_file(lines_.rest()));
            lines_.drop_rest();
        }
    }

    outcome result() {
        const auto found = verifier_.result();
        require(found.held <= found.grants);
        require(out_.broken || found.missing <= found.lost);
        out_.lines = found.lines;
        return out_;
    }

private:
    bool note(const std::optional<audit_verifier::violation>& wrong) {
        if (wrong) {
            out_.broken = wrong->why;
        }
        return !wrong;
    }

    audit_verifier verifier_;
    telemetry::line_splitter lines_;
    outcome out_;
};

outcome verify(const cut_input& input, bool in_pieces, audit_verifier::allowances allowed) {
    verification all{allowed};
    all.take_file([&](auto take) {
        input.feed(in_pieces,
                   [&](monolock::fuzz::bytes piece) { return take(cut_input::text_of(piece)); });
    });
    return all.result();
}

outcome verify(std::string_view file, audit_verifier::allowances allowed) {
    verification all{allowed};
    all.take_file([&](auto take) { take(file); });
    return all.result();
}

// The log was rotated behind its first newline from there on.
outcome verify_in_two(std::string_view log, std::size_t from) {
    const std::size_t newline = std::min(log.find('\n', from), log.size());
    const std::size_t second = std::min(newline + 1, log.size());
    verification all{{}};
    all.take_file([&](auto take) { take(log.substr(0, second)); });
    all.take_file([&](auto take) { take(log.substr(second)); });
    return all.result();
}

// A record that is read, written and read again is the same.
void check_lines(std::string_view whole) {
    telemetry::line_splitter lines;
    telemetry::audit_reader reader;
    telemetry::audit_reader again;
    telemetry::audit_stats stats;
    lines.feed(whole, [&](std::string_view line) {
        const auto read = reader.read(line);
        const bool is_record = !std::holds_alternative<telemetry::audit_malformed>(read);
        require(stats.take(line) == is_record);
        std::string written;
        if (const auto* const record = std::get_if<telemetry::audit_record>(&read)) {
            append_audit_line(written, *record);
            written.pop_back();
            const auto reread = again.read(written);
            require(std::get<telemetry::audit_record>(reread) == *record);
        } else if (const auto* const gap = std::get_if<telemetry::audit_gap>(&read)) {
            append_audit_line(written, *gap);
            require(written == std::string{line} + "\n");
        }
        return true;
    });
    require(!stats.to_json().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const cut_input input{data, size};
    check_lines(input.text());
    const outcome strict = verify(input, false, {});
    const outcome in_pieces = verify(input, true, {});
    require(strict.broken == in_pieces.broken && strict.lines == in_pieces.lines);
    const std::size_t cut = input.seed() * input.text().size() / 256;
    const std::size_t last = std::max<std::size_t>(input.text().size(), 1) - 1;
    const outcome in_two = verify_in_two(input.text(), cut);
    require(in_two.broken.has_value() == strict.broken.has_value() && in_two.lines == strict.lines);
    if (strict.broken) {
        return 0;
    }
    for (const bool continued : {false, true}) {
        const audit_verifier::allowances lenient{.continued = continued, .crashes = true};
        require(!verify(input, false, lenient).broken);
        require(!verify(input.text().substr(0, cut), lenient).broken);
        require(!verify(input.text().substr(0, last), lenient).broken);
    }
    return 0;
}
