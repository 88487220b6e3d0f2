#pragma once

#include <stdexcept>
#include <string>

#include "cli/exit_code.hpp"

namespace monolock::cli {

// Why a request to the admin API has no answer to show: one line for people, and the exit status.
class admin_error : public std::runtime_error {
public:
    admin_error(exit_code status, const std::string& why)
        : std::runtime_error{why}, status_{status} {}

    [[nodiscard]] exit_code status() const noexcept { return status_; }

private:
    exit_code status_;
};

// No answer within its limit.
class too_late : public admin_error {
public:
    explicit too_late(const std::string& why) : admin_error{exit_code::unreachable, why} {}
};

// An answer that is not one of the API.
class bad_answer : public admin_error {
public:
    explicit bad_answer(const std::string& why)
        : admin_error{exit_code::refused, "no admin API of monolock answers there: " + why},
          why_{why} {}

    [[nodiscard]] const std::string& why() const noexcept { return why_; }

private:
    std::string why_;
};

// What is added to the error of a change that was sent and has no answer that says what it did.
constexpr const char* change_unknown = "; whether the claim was ended is not known";

// Somebody wants the waiting to end: the interrupt descriptor became readable. No failure.
class interrupted : public std::exception {};

}  // namespace monolock::cli
