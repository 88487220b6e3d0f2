#include "config/options.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "telemetry/escape.hpp"

namespace monolock::config {

namespace {

using telemetry::quoted;

// "-name=value" taken apart; no value for "-name".
struct flag_word {
    std::string_view name;
    std::optional<std::string_view> value;
};

// Nothing if the word is not a flag.
std::optional<flag_word> as_flag(std::string_view word) {
    if (word.size() < 2 || word.front() != '-') {
        return std::nullopt;
    }
    word.remove_prefix(word[1] == '-' ? 2 : 1);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
        return flag_word{.name = word, .value = std::nullopt};
    }
    return flag_word{.name = word.substr(0, equals), .value = word.substr(equals + 1)};
}

std::optional<std::size_t> find_option(std::span<const option> options, std::string_view name) {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [name](const option& row) { return row.name == name; });
    if (found == options.end()) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(found - options.begin());
}

bool is_set(const std::vector<setting>& settings, std::size_t option_index) {
    return std::any_of(settings.begin(), settings.end(),
                       [=](const setting& each) { return each.option == option_index; });
}

}  // namespace

std::string spelled(std::string_view name, std::string_view dashes) {
    return std::string{name.size() == 1 ? "-" : dashes} + std::string{name};
}

parsed<command_line> scan(std::span<const option> options, std::span<const char* const> words,
                          std::string_view dashes) {
    command_line out;
    std::size_t at = 0;
    while (at < words.size()) {
        const std::string_view word = words[at];
        if (word == "--") {
            out.closed = true;
            ++at;
            break;
        }
        const auto flag = as_flag(word);
        if (!flag) {
            break;
        }
        const auto index = find_option(options, flag->name);
        if (!index) {
            return diagnostic{"unknown flag " + quoted_word(word)};
        }
        setting next{.option = *index, .value = {}, .source = spelled(flag->name, dashes)};
        const option_kind kind = options[*index].kind;
        if (kind != option_kind::value && flag->value) {
            return diagnostic{next.source + " takes no value"};
        }
        if (kind == option_kind::request) {
            out.request = index;
            return out;
        }
        if (kind == option_kind::value && !flag->value && ++at == words.size()) {
            return diagnostic{next.source + " needs a value"};
        }
        if (kind == option_kind::value) {
            next.value = flag->value.value_or(words[at]);
        }
        out.settings.push_back(std::move(next));
        ++at;
    }
    out.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    return out;
}

parsed<command_line> scan_anywhere(std::span<const option> options,
                                   std::span<const char* const> words, std::string_view dashes) {
    command_line out;
    while (true) {
        auto part = scan(options, words, dashes);
        if (!part) {
            return part.error();
        }
        command_line found = *std::move(part);
        std::move(found.settings.begin(), found.settings.end(), std::back_inserter(out.settings));
        out.request = found.request;
        if (found.request) {
            return out;
        }
        if (found.closed || found.rest.empty()) {
            out.closed = found.closed;
            std::move(found.rest.begin(), found.rest.end(), std::back_inserter(out.rest));
            return out;
        }
        out.rest.push_back(std::move(found.rest.front()));
        words = words.last(found.rest.size() - 1);
    }
}

std::vector<setting> with_environment(std::span<const option> options,
                                      std::vector<setting> from_words,
                                      const environment& variables) {
    std::vector<setting> out;
    for (std::size_t index = 0; index < options.size(); ++index) {
        const char* const variable = options[index].variable;
        if (variable == nullptr || is_set(from_words, index)) {
            continue;
        }
        const char* const value = variables(variable);
        if (value != nullptr && *value != '\0') {
            out.push_back({.option = index, .value = value, .source = variable});
        }
    }
    std::move(from_words.begin(), from_words.end(), std::back_inserter(out));
    return out;
}

std::string source_of(std::span<const option> options, const std::vector<setting>& settings,
                      std::string_view name) {
    const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const setting& each) {
        return options[each.option].name == name;
    });
    return found == settings.rend() ? std::string{} : found->source;
}

std::string quoted_word(std::string_view word) {
    constexpr std::string_view scheme_end = "://";
    std::string out;
    for (;;) {
        const std::size_t begin = word.find(scheme_end);
        if (begin == std::string_view::npos) {
            return quoted(out.append(word));
        }
        const std::size_t host = begin + scheme_end.size();
        // A password may hold whatever else ends this part of a URL.
        const std::string_view rest = word.substr(host, word.find(scheme_end, host) - host);
        const std::size_t user_end = rest.rfind('@');
        out.append(word.substr(0, host));
        if (user_end != std::string_view::npos) {
            out += "...";
            word.remove_prefix(user_end);
        }
        word.remove_prefix(host);
    }
}

diagnostic refuse(const setting& which, const diagnostic& why) {
    return {which.source + " " + quoted_word(which.value) + ": " + why.text};
}

std::string format_table(std::span<const option> options, std::string_view dashes) {
    std::size_t name_width = 0;
    std::size_t variable_width = 0;
    std::size_t default_width = 0;
    const auto variable_of = [](const option& row) {
        return std::string_view{row.variable == nullptr ? "" : row.variable};
    };
    for (const option& row : options) {
        name_width = std::max(name_width, spelled(row.name, dashes).size());
        variable_width = std::max(variable_width, variable_of(row).size());
        default_width = std::max(default_width, row.default_text.size());
    }
    std::string out;
    const auto append_column = [&out](std::string_view text, std::size_t width) {
        out += text;
        out.append(width - text.size() + 2, ' ');
    };
    for (const option& row : options) {
        if (row.help.empty()) {
            continue;
        }
        out += "  ";
        append_column(spelled(row.name, dashes), name_width);
        if (variable_width != 0) {
            append_column(variable_of(row), variable_width);
        }
        append_column(row.default_text, default_width);
        out += row.help;
        out += '\n';
    }
    return out;
}

}  // namespace monolock::config
