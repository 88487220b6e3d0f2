#include "etcd/user.hpp"

#include "etcd/messages/user_file.hpp"
#include "posix/read_file.hpp"

namespace monolock::etcd {

config::parsed<credentials> read_user_file(const std::string& path) {
    const auto text = posix::read_file(path, user_file_bytes_max);
    if (!text) {
        return text.error();
    }
    return parse_user_file(*text);
}

}  // namespace monolock::etcd
