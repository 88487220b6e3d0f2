#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace fenced {

// Says that the set was read, and thinks until the test lets it go on, by a byte on the descriptor
// THINK_FD. Deaf meanwhile, as a computation is: what the lock's stop token says is not looked at.
inline std::string think(std::string body, const std::string& line, std::uint64_t token) {
    std::cout << "read " << line << ' ' << token << std::endl;
    char go = 0;
    if (::read(std::atoi(std::getenv("THINK_FD")), &go, 1) != 1) {
        std::_Exit(1);  // the test is over
    }
    return body;
}

}  // namespace fenced
