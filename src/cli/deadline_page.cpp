#include "cli/deadline_page.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace monolock::cli {

deadline_page::deadline_page() {
    void* const memory =
        mmap(nullptr, sizeof(content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::system_error{errno, std::system_category(), "mmap"};
    }
    page_ = new (memory) content{};
}

deadline_page::~deadline_page() {
    munmap(page_, sizeof(content));
}

}  // namespace monolock::cli
