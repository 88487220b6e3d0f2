#include "faults/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <system_error>

#include "history/recording.hpp"
#include "monolock/boot_clock.hpp"

namespace monolock::faults {

recorder::recorder(const std::string& path, std::uint32_t worker)
    : file_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)},
      worker_{worker} {
    if (!file_) {
        throw std::system_error{errno, std::generic_category(), path};
    }
}

history::instant recorder::now() noexcept {
    return boot_clock::now().time_since_epoch();
}

void recorder::note(history::event what, std::string_view lock_name) const {
    if (what.at == history::instant{0}) {
        what.at = now();
    }
    what.claim.worker = worker_;
    const std::string line = history::to_line(what, lock_name);
    if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        std::cerr << "the history cannot be written\n";
        std::abort();
    }
}

}  // namespace monolock::faults
