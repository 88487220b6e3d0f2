#pragma once

#include <string>
#include <utility>
#include <variant>

namespace monolock::config {

// Why a text was refused: one line, in words for the person who wrote it. It never repeats the
// text, which may hold anything; whoever knows where the text came from names that place and quotes
// it.
struct diagnostic {
    std::string text;

    friend bool operator==(const diagnostic&, const diagnostic&) = default;
};

// A value, or the diagnostic that stands in its place.
template <class T>
class [[nodiscard]] parsed {
public:
    // Implicit, both: a function returns what it found, or why it did not.
    // NOLINTNEXTLINE(google-explicit-constructor)
    parsed(T value) : outcome_{std::in_place_index<0>, std::move(value)} {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    parsed(diagnostic why) : outcome_{std::in_place_index<1>, std::move(why)} {}

    [[nodiscard]] explicit operator bool() const noexcept { return outcome_.index() == 0; }

    // Only when there is a value.
    [[nodiscard]] const T& operator*() const& { return std::get<0>(outcome_); }
    [[nodiscard]] T&& operator*() && { return std::get<0>(std::move(outcome_)); }
    [[nodiscard]] const T* operator->() const { return &std::get<0>(outcome_); }

    // Only when there is none.
    [[nodiscard]] const diagnostic& error() const& { return std::get<1>(outcome_); }

private:
    std::variant<T, diagnostic> outcome_;
};

}  // namespace monolock::config
