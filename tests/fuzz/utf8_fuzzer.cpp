// The validator against a decoder that goes about it the other way round.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/pieces.hpp"
#include "fuzz/utf8_oracle.hpp"
#include "protocol/utf8.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    monolock::fuzz::require(monolock::protocol::is_valid_utf8(text) ==
                            monolock::fuzz::utf8_oracle(text));
    return 0;
}
