#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "telemetry/audit_reader.hpp"

namespace monolock::telemetry {

// Proves of an audit log, line by line, that
//  1. each lock had one owner at a time: `released` stands before the next `granted`;
//  2. each grant has one end, told of the same session, and each end its grant;
//  3. tokens rise from grant to grant of a lock, and none is given twice;
//  4. who was released by force had a force_release before, and the other way round;
//  5. every line is a record.
// or names the first line that breaks one of them. Memory grows with the locks held at a time, not
// with the log.
//
// Over all locks tokens rise as they are given, but records of different threads may stand in
// another order: a token that is smaller than one before it is taken for that while fewer than
// reorder_max grants lie between them.
class audit_verifier {
public:
    static constexpr std::size_t reorder_max = std::size_t{1} << 16U;

    // What a log may show without being wrong. Each costs a part of the proof.
    struct allowances {
        // It continues older files that are not given: ends of grants from before.
        bool continued = false;
        // The server was killed, or the machine lost power: grants without an end, and a line that
        // breaks off.
        bool crashes = false;
    };

    struct place {
        std::size_t file = 0;  // index
        std::uint64_t line = 0;
    };
    struct violation {
        place where;
        std::string why;
    };

    // What was found, for the report.
    struct summary {
        std::uint64_t lines = 0;
        std::uint64_t grants = 0;
        std::uint64_t ends = 0;
        std::uint64_t denied = 0;
        std::uint64_t forced = 0;
        std::uint64_t kicked = 0;
        std::uint64_t held = 0;  // owners at the end
        std::uint64_t gaps = 0;
        std::uint64_t lost = 0;              // in gaps
        std::uint64_t missing = 0;           // records that must be among the lost
        std::uint64_t ends_from_before = 0;  // allowances::continued
        std::uint64_t without_end = 0;       // allowances::crashes
        std::uint64_t broken_off = 0;        // allowances::crashes
        std::vector<place> first_gaps;       // ten at the most
    };

    explicit audit_verifier(allowances allowed) noexcept : allowed_{allowed} {}
    audit_verifier(const audit_verifier&) = delete;
    audit_verifier& operator=(const audit_verifier&) = delete;
    ~audit_verifier() = default;

    // Files come in order, the oldest first; the name is for messages.
    void begin_file(std::string name);
    // The next line of it, without its newline. After a violation nothing more may be asked.
    [[nodiscard]] std::optional<violation> take(std::string_view line);
    // The end of the file, and what stands after its last newline.
    [[nodiscard]] std::optional<violation> end_file(std::string_view rest);

    [[nodiscard]] summary result() const;
    // "audit.log:17"
    [[nodiscard]] std::string text_of(const place& where) const;

private:
    // A lock that is held, or was a moment ago.
    struct lock_state : boost::intrusive::list_base_hook<> {
        std::string_view name;       // the key in locks_
        std::uint64_t token = 0;     // of its last grant
        std::uint64_t sequence = 0;  // number of the line of that grant
        std::size_t session = 0;     // a hash of who it was
        place where;
        bool held = false;
        bool forced = false;
    };
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };
    using lock_map = std::unordered_map<std::string, lock_state, text_hash, std::equal_to<>>;
    struct recent_token {
        std::uint64_t token = 0;
        lock_state* of = nullptr;
    };

    // What is wrong with it, or nothing.
    using verdict = std::optional<std::string>;

    verdict take_line(std::string_view line);
    verdict take_rest(std::string_view rest);
    verdict take_broken(std::string_view line, const audit_malformed& what);
    verdict take_record(const audit_record& record);
    verdict take_gap(const audit_gap& gap);
    verdict take_granted(const audit_record& record, const audit_granted& event);
    verdict take_missing_end(lock_state& lock, std::uint64_t token);
    verdict take_released(const audit_record& record, const audit_released& event);
    verdict take_unknown_end(lock_state* lock, const audit_record& record, std::uint64_t token);
    verdict take_force_release(const audit_record& record, const audit_force_release& event);

    verdict note_token(lock_state& lock, std::uint64_t token);
    verdict miss(std::uint64_t records, const std::string& why);
    [[nodiscard]] bool is_from_before(const lock_state* lock, std::uint64_t token) const;
    [[nodiscard]] bool is_known(std::uint64_t token) const noexcept;
    void end_held(lock_state& lock) noexcept;
    void end_all_up_to(std::uint64_t sequence);
    void forget_old_tokens();
    void forget_if_old(const lock_state& lock);
    [[nodiscard]] lock_state& make(std::string_view name);
    [[nodiscard]] lock_state* find(std::string_view name);
    [[nodiscard]] std::string grant_of(const lock_state& state) const;

    allowances allowed_;
    audit_reader reader_;
    summary found_;
    std::vector<std::string> files_;
    place here_;

    lock_map locks_;
    boost::intrusive::list<lock_state> open_;  // those held, in the order of their grants
    std::deque<recent_token> recent_;          // ascending
    std::uint64_t floor_ = 0;                  // all tokens up to it are forgotten
    std::uint64_t first_token_ = 0;
    std::uint64_t gap_sequence_ = 0;  // number of the line of the last gap; zero: none
    std::unordered_set<std::uint64_t> ends_from_before_;
};

}  // namespace monolock::telemetry
