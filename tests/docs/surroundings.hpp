#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <monolock/monolock.hpp>

// What the C++ in our documents takes for granted where it is less than a program. Nothing of it is
// defined anywhere: such samples are compiled, not run.

using namespace std::chrono_literals;  // NOLINT(google-global-names-in-headers)

extern monolock::client client;
extern std::stop_token stop;

void import_rows(std::stop_token stop, std::uint64_t token);
void step(std::uint64_t token);
void report(const std::string& text);

struct import_failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};
