#pragma once

#include "cli/admin/admin_arguments.hpp"

namespace monolock::cli {

// `monolockctl locks --watch`; the exit status. There must be no other thread.
//
// On a terminal: a screen of its own, drawn anew every two seconds and when the window changes; a
// server that is away for a while is shown as that. Else: a line for each lock that has an owner,
// then one for each change of owner as it happens; it ends when the server does.
//
// A signal ends it, and the process ends by that signal, with the terminal as it was. A reader of
// its output that goes away ends it too, and that is no failure.
[[nodiscard]] int run_watch(const locks_options& told);

}  // namespace monolock::cli
