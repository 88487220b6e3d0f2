#pragma once

namespace monolock::core {

// Ends the process with one line on standard error. Called by MONOLOCK_ASSERT only.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace monolock::core

// For what only a mistake of ours can break; stays on in release builds. A server that dies is
// restarted, one that grants twice is believed. Never for anything that a peer, a file, the kernel
// or a clock can cause. One condition, without side effects.
#define MONOLOCK_ASSERT(condition) \
    (static_cast<bool>(condition)  \
         ? static_cast<void>(0)    \
         : ::monolock::core::assertion_failed(#condition, __FILE__, __LINE__))
