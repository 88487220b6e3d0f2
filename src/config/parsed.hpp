#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace monolock::config {

// Why a text was refused: one line, in words for the person who wrote it. It never repeats the
// text, which may hold anything; whoever knows where the text came from names that place and quotes
// it.
struct diagnostic {
    std::string text;

    friend bool operator==(const diagnostic&, const diagnostic&) = default;
};

// Everything that is wrong with a file, so that five mistakes are mended in one go.
using diagnostics = std::vector<diagnostic>;

// All of them on one line, for a log: "first; second".
[[nodiscard]] std::string joined(const diagnostics& all);

// A value, or what stands in its place: the diagnostic.
template <class T, class Why = diagnostic>
class [[nodiscard]] parsed {
public:
    // Implicit, both: a function returns what it found, or why it did not.
    // NOLINTNEXTLINE(google-explicit-constructor)
    parsed(T value) : outcome_{std::in_place_index<0>, std::move(value)} {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    parsed(Why why) : outcome_{std::in_place_index<1>, std::move(why)} {}

    [[nodiscard]] explicit operator bool() const noexcept { return outcome_.index() == 0; }

    // Only when there is a value.
    [[nodiscard]] const T& operator*() const& { return std::get<0>(outcome_); }
    [[nodiscard]] T&& operator*() && { return std::get<0>(std::move(outcome_)); }
    [[nodiscard]] const T* operator->() const { return &std::get<0>(outcome_); }

    // Only when there is none.
    [[nodiscard]] const Why& error() const& { return std::get<1>(outcome_); }

private:
    std::variant<T, Why> outcome_;
};

// A value, or everything that is wrong; never an empty list.
template <class T>
using checked = parsed<T, diagnostics>;

}  // namespace monolock::config
