#pragma once

// What the planted mutants ask at run time: which of them is to be active. All mutants are in one
// build; the environment chooses one (MUTANT=17), or none. With MUTANT_REACHED=file the file has a
// byte for each mutant, which is set once it was asked for, also by a child that dies in a death
// test: a mutant that no test asks for is killed by none.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <type_traits>

namespace mutation {

inline constexpr unsigned ids_max = 1U << 16U;

struct choice {
    unsigned active = 0;
    char* reached = nullptr;

    choice() noexcept {
        if (const char* const id = std::getenv("MUTANT")) {
            active = static_cast<unsigned>(std::strtoul(id, nullptr, 10));
        }
        if (const char* const name = std::getenv("MUTANT_REACHED")) {
            const int file = ::open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
            void* const shared =
                ::ftruncate(file, ids_max) != 0
                    ? MAP_FAILED
                    : ::mmap(nullptr, ids_max, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (shared == MAP_FAILED) {
                std::abort();
            }
            reached = static_cast<char*>(shared);
            ::close(file);
        }
    }
};

inline choice chosen;

inline bool ask(unsigned id) noexcept {
    if (chosen.reached != nullptr) {
        chosen.reached[id] = 1;
    }
    return id == chosen.active;
}

// What the compiler evaluates is as written: constant expressions are mutated one build each.
constexpr bool active(unsigned id) noexcept {
    if (std::is_constant_evaluated()) {
        return false;
    }
    return ask(id);
}

// For a switch: the value, or with the mutant active one of two labels in place of the other.
template <typename Value>
constexpr Value swapped(unsigned id, Value value, std::type_identity_t<Value> one,
                        std::type_identity_t<Value> other) noexcept {
    if (!active(id)) {
        return value;
    }
    return value == one ? other : value == other ? one : value;
}

}  // namespace mutation
