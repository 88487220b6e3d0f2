#pragma once

// Marks what the shared library exports; everything else in it is hidden.
#if defined(__GNUC__)
#define MONOLOCK_API __attribute__((visibility("default")))
#else
#define MONOLOCK_API
#endif
