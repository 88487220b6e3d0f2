#pragma once

// Marks what the shared library exports, and within that what it does not; all else in it is
// hidden.
#if defined(__GNUC__)
#define MONOLOCK_API __attribute__((visibility("default")))
#define MONOLOCK_LOCAL __attribute__((visibility("hidden")))
#else
#define MONOLOCK_API
#define MONOLOCK_LOCAL
#endif
