#pragma once

// The whole client library.

#include <monolock/boot_clock.hpp>
#include <monolock/client.hpp>
#include <monolock/error.hpp>
#include <monolock/lock.hpp>
