#include "config/access_rules_json.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::config {

namespace {

// Of more than these, the rest is only counted.
constexpr std::size_t diagnostics_max = 100;

// How much of a key that nobody asked for is repeated.
constexpr std::size_t key_shown_max = 64;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

enum class kind : std::uint8_t { null, boolean, number, string, array, object };

std::string_view with_article(kind what) noexcept {
    switch (what) {
        case kind::null:
            return "null";
        case kind::boolean:
            return "a boolean";
        case kind::number:
            return "a number";
        case kind::string:
            return "a string";
        case kind::array:
            return "an array";
        case kind::object:
            return "an object";
    }
    return "?";
}

// "/key", as RFC 6901 escapes it.
std::string pointer_step(std::string_view key) {
    std::string step = "/";
    for (const char letter : key.substr(0, key_shown_max)) {
        switch (letter) {
            case '~':
                step += "~0";
                break;
            case '/':
                step += "~1";
                break;
            default:
                step += letter;
        }
    }
    return key.size() > key_shown_max ? step + "..." : step;
}

// Line and column of a byte, both from 1; the column counts characters.
std::string line_and_column(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t newline = before.rfind('\n');
    const std::string_view line_before =
        newline == std::string_view::npos ? before : before.substr(newline + 1);
    const auto column = 1 + std::ranges::count_if(line_before, [](char byte) {
                            return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
                        });
    return std::to_string(line) + ":" + std::to_string(column);
}

// The library's words for a syntax error, without its own prefix and without the token that it read
// last: that comes from the file, and the column shows it.
std::string syntax_error_of(std::string what, std::string_view token) {
    const std::size_t prefix = what.find(": ");
    if (prefix == std::string::npos) {
        return "a number out of range";  // the one error that is about a value
    }
    what.erase(0, prefix + 2);
    const std::string read = "; last read: '" + std::string{token} + "'";
    if (const std::size_t at = what.find(read); at != std::string::npos) {
        what.erase(at, read.size());
    }
    return what;
}

// Collects what is wrong with one file.
class findings {
public:
    findings(std::string_view file, diagnostics& into) : into_{&into} {
        telemetry::append_logfmt_value(file_, file);
    }

    void syntax(const std::string& where, std::string_view why) {
        add(file_ + ":" + where + ": " + std::string{why});
    }

    // An empty pointer is the whole document.
    void meaning(std::string_view pointer, std::string_view why) {
        std::string text = file_ + ": ";
        if (!pointer.empty()) {
            telemetry::append_logfmt_value(text, pointer);
            text += ": ";
        }
        add(text.append(why));
    }

    void finish() {
        if (left_out_ > 0) {
            into_->push_back({file_ + ": and " + std::to_string(left_out_) + " more"});
        }
    }

private:
    void add(std::string text) {
        if (into_->size() < diagnostics_max) {
            into_->push_back({std::move(text)});
        } else {
            ++left_out_;
        }
    }

    std::string file_;
    diagnostics* into_;
    std::size_t left_out_ = 0;
};

// Takes the document while it is parsed, so that it sees a key that comes twice, and so that deep
// nesting costs neither stack nor memory: what has no place in a list of rules is passed over.
class rules_reader final : public nlohmann::json_sax<nlohmann::json> {
public:
    rules_reader(std::string_view text, findings& wrong) : text_{text}, wrong_{&wrong} {}

    [[nodiscard]] std::vector<access_rule> take_rules() { return std::move(rules_); }

    // All return whether to go on.
    bool null() override { return scalar(kind::null); }
    bool boolean(bool) override { return scalar(kind::boolean); }
    bool number_integer(number_integer_t) override { return scalar(kind::number); }
    bool number_unsigned(number_unsigned_t) override { return scalar(kind::number); }
    bool number_float(number_float_t, const string_t&) override { return scalar(kind::number); }
    bool binary(binary_t&) override { return false; }  // there is none in JSON text
    bool string(string_t& value) override { return scalar(kind::string, value); }
    bool start_object(std::size_t) override { return enter(kind::object); }
    bool start_array(std::size_t) override { return enter(kind::array); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }
    bool key(string_t& name) override;
    bool parse_error(std::size_t bytes_read, const std::string& token,
                     const nlohmann::detail::exception& why) override;

private:
    // What is being read: the next value, or the next key, is in it.
    enum class place : std::uint8_t { document, top_object, rules, rule, locks };

    // What the next value must be, or nothing if it does not count: its key is unknown or came
    // before, which has been told, and what it holds says nothing more.
    [[nodiscard]] std::optional<kind> expected() const;
    [[nodiscard]] bool accept(kind what);

    bool scalar(kind what, std::string_view text = {});
    bool enter(kind what);
    bool leave();
    void take_pattern(std::string_view pattern);
    void end_value();
    void require_key(std::string_view key, std::string_view why);

    // The place of the next value, and of what is being read.
    [[nodiscard]] std::string pointer() const;
    [[nodiscard]] std::string pointer_around() const;

    std::string_view text_;
    findings* wrong_;
    std::vector<access_rule> rules_;  // while a rule is read, the last is that one
    place place_ = place::document;
    std::size_t passed_over_ = 0;  // how deep inside a value that is passed over
    std::size_t rule_index_ = 0;
    std::size_t lock_index_ = 0;
    std::string key_;                               // of the next value
    bool key_counts_ = false;                       // it is known and new
    std::set<std::string, std::less<>> top_keys_;   // met so far
    std::set<std::string, std::less<>> rule_keys_;  // of the rule that is read
};

bool rules_reader::key(string_t& name) {
    if (passed_over_ > 0) {
        return true;
    }
    key_ = name;
    const bool in_rule = place_ == place::rule;
    const bool known = in_rule ? key_ == "identity" || key_ == "locks" : key_ == "rules";
    const bool fresh = (in_rule ? rule_keys_ : top_keys_).insert(key_).second;
    key_counts_ = known && fresh;
    if (!fresh) {
        wrong_->meaning(pointer(), "duplicate key");
    } else if (!known) {
        wrong_->meaning(pointer(), in_rule ? "unknown key; a rule has \"identity\" and \"locks\""
                                           : "unknown key; there is only \"rules\"");
    }
    return true;
}

// `bytes_read` counts the byte that made it wrong, or one more than there are at the end.
bool rules_reader::parse_error(std::size_t bytes_read, const std::string& token,
                               const nlohmann::detail::exception& why) {
    const std::size_t at =
        std::min(bytes_read - std::min<std::size_t>(bytes_read, 1), text_.size());
    wrong_->syntax(line_and_column(text_, at), syntax_error_of(why.what(), token));
    return false;
}

std::optional<kind> rules_reader::expected() const {
    switch (place_) {
        case place::document:
        case place::rules:
            return kind::object;
        case place::top_object:
            return key_counts_ ? std::optional{kind::array} : std::nullopt;
        case place::rule:
            return !key_counts_         ? std::nullopt
                   : key_ == "identity" ? std::optional{kind::string}
                                        : std::optional{kind::array};
        case place::locks:
            return kind::string;
    }
    return std::nullopt;
}

bool rules_reader::accept(kind what) {
    const std::optional<kind> wanted = expected();
    if (wanted && *wanted != what) {
        wrong_->meaning(pointer(), "must be " + std::string{with_article(*wanted)} + ", is " +
                                       std::string{with_article(what)});
    }
    return wanted == what;
}

bool rules_reader::scalar(kind what, std::string_view text) {
    if (passed_over_ > 0) {
        return true;
    }
    if (accept(what)) {
        take_pattern(text);  // strings are the only scalars that are ever expected
    }
    end_value();
    return true;
}

bool rules_reader::enter(kind what) {
    if (passed_over_ > 0 || !accept(what)) {
        ++passed_over_;
        return true;
    }
    switch (place_) {
        case place::document:
            place_ = place::top_object;
            break;
        case place::top_object:
            place_ = place::rules;
            break;
        case place::rules:
            place_ = place::rule;
            rules_.emplace_back();
            rule_keys_.clear();
            break;
        case place::rule:
            place_ = place::locks;
            lock_index_ = 0;
            break;
        case place::locks:
            break;  // expects strings only
    }
    return true;
}

bool rules_reader::leave() {
    if (passed_over_ > 0) {
        if (--passed_over_ == 0) {
            end_value();
        }
        return true;
    }
    switch (place_) {
        case place::document:
            break;  // not entered yet
        case place::top_object:
            require_key("rules", "must have the key \"rules\"");
            place_ = place::document;
            break;
        case place::rules:
            place_ = place::top_object;
            break;
        case place::rule:
            require_key("identity", "must have an \"identity\"");
            require_key("locks", "must have \"locks\"");
            place_ = place::rules;
            break;
        case place::locks:
            if (lock_index_ == 0) {
                wrong_->meaning(pointer_around(), "must have at least one pattern");
            }
            place_ = place::rule;
            break;
    }
    end_value();
    return true;
}

// An empty pattern would match nothing: neither an identity nor a lock name is ever empty. Whoever
// wrote it meant something else.
void rules_reader::take_pattern(std::string_view pattern) {
    if (pattern.empty()) {
        wrong_->meaning(pointer(), place_ == place::locks
                                       ? "must not be empty: no lock has an empty name"
                                       : "must not be empty: no client has an empty identity");
    }
    if (place_ == place::locks) {
        rules_.back().locks.emplace_back(pattern);
    } else {
        rules_.back().identity = pattern;
    }
}

void rules_reader::end_value() {
    if (place_ == place::rules) {
        ++rule_index_;
    } else if (place_ == place::locks) {
        ++lock_index_;
    }
}

void rules_reader::require_key(std::string_view key, std::string_view why) {
    const auto& met = place_ == place::rule ? rule_keys_ : top_keys_;
    if (!met.contains(key)) {
        wrong_->meaning(pointer_around(), why);
    }
}

std::string rules_reader::pointer_around() const {
    switch (place_) {
        case place::document:
        case place::top_object:
            return "";
        case place::rules:
            return "/rules";
        case place::rule:
            return "/rules/" + std::to_string(rule_index_);
        case place::locks:
            return "/rules/" + std::to_string(rule_index_) + "/locks";
    }
    return "";
}

std::string rules_reader::pointer() const {
    switch (place_) {
        case place::document:
            return "";
        case place::top_object:
        case place::rule:
            return pointer_around() + pointer_step(key_);
        case place::rules:
            return pointer_around() + "/" + std::to_string(rule_index_);
        case place::locks:
            return pointer_around() + "/" + std::to_string(lock_index_);
    }
    return "";
}

// What the library would let pass, taking a NUL for the end and a byte order mark for nothing.
bool is_json_text(std::string_view text, findings& wrong) {
    if (text.starts_with(byte_order_mark)) {
        wrong.syntax("1:1", "begins with a byte order mark; JSON has none");
        return false;
    }
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
        wrong.syntax(line_and_column(text, nul), "a NUL; the file is damaged or no text");
        return false;
    }
    return true;
}

}  // namespace

checked<access_rules> parse_access_rules(std::string_view file,
                                         const parsed<std::string>& content) {
    diagnostics all;
    findings wrong{file, all};
    if (!content) {
        wrong.meaning("", content.error().text);
        return all;
    }
    rules_reader reader{*content, wrong};
    if (is_json_text(*content, wrong)) {
        nlohmann::json::sax_parse(*content, &reader);
    }
    wrong.finish();
    if (!all.empty()) {
        return all;
    }
    return access_rules{reader.take_rules()};
}

}  // namespace monolock::config
