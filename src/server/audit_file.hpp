#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/parsed.hpp"
#include "posix/descriptor.hpp"
#include "server/audit_sink.hpp"

namespace monolock::server {

// The audit log's file, or standard output.
//
// A regular file is appended to, and created with mode 0640 less the umask. A FIFO is opened for
// reading too, so that neither the start nor a write waits for a reader: what the pipe cannot hold
// waits in the server, and a reader may go and come back.
class audit_file final : public audit_sink {
public:
    // The path "-" is standard output. The diagnostic says why it cannot be written to, and does
    // not repeat the path.
    [[nodiscard]] static config::parsed<std::unique_ptr<audit_file>> open(const std::string& path);

    // What open() would say, as far as that can be known without making the file.
    [[nodiscard]] static std::optional<config::diagnostic> check(const std::string& path);

    [[nodiscard]] outcome write(std::string_view text) noexcept override;
    [[nodiscard]] std::size_t write_bytes_max() const noexcept override;
    [[nodiscard]] bool take_back(std::size_t count) noexcept override;
    [[nodiscard]] bool ends_within_line() const noexcept override;
    void wait(std::chrono::milliseconds time_max) noexcept override;

private:
    audit_file(posix::descriptor owned, int fd);

    posix::descriptor owned_;  // none for standard output
    int fd_;
    bool regular_ = false;
};

}  // namespace monolock::server
