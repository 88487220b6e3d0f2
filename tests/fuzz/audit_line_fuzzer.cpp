// Any bytes as an audit log: the same bytes whole and in pieces must mean the same, nothing that is
// read may be lost by writing it again, and no allowance makes a wrong log out of a proven one.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/pieces.hpp"
#include "telemetry/audit_stats.hpp"
#include "telemetry/audit_verifier.hpp"
#include "telemetry/line_splitter.hpp"

namespace {

namespace telemetry = monolock::telemetry;
using monolock::fuzz::require;
using telemetry::audit_verifier;

std::string_view text_of(monolock::fuzz::bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct outcome {
    std::uint64_t lines = 0;
    std::optional<std::string> broken;
};

outcome verify(const std::vector<monolock::fuzz::bytes>& pieces,
               audit_verifier::allowances allowed) {
    audit_verifier verifier{allowed};
    telemetry::line_splitter lines;
    outcome out;
    verifier.begin_file("log");
    for (const auto piece : pieces) {
        const bool go_on = lines.feed(text_of(piece), [&](std::string_view line) {
            if (const auto wrong = verifier.take(line)) {
                out.broken = wrong->why;
            }
            return !out.broken;
        });
        if (!go_on) {
            break;
        }
    }
    if (!out.broken) {
        if (const auto wrong = verifier.end_file(lines.rest())) {
            out.broken = wrong->why;
        }
    }
    const auto found = verifier.result();
    require(found.held <= found.grants);
    require(out.broken || found.missing <= found.lost);
    out.lines = found.lines;
    return out;
}

// A record that is read, written and read again is the same.
void check_lines(monolock::fuzz::bytes whole) {
    telemetry::line_splitter lines;
    telemetry::audit_reader reader;
    telemetry::audit_reader again;
    telemetry::audit_stats stats;
    lines.feed(text_of(whole), [&](std::string_view line) {
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
    const auto input = monolock::fuzz::cut(data, size);
    check_lines(input.whole);
    const outcome strict = verify({input.whole}, {});
    const outcome in_pieces = verify(input.pieces, {});
    require(strict.broken == in_pieces.broken && strict.lines == in_pieces.lines);
    for (const bool continued : {false, true}) {
        const outcome lenient = verify({input.whole}, {.continued = continued, .crashes = true});
        require(strict.broken || !lenient.broken);
    }
    return 0;
}
