// Request targets of any bytes: a normal path leaves nothing to normalise and no second reading.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "request/path.h"

namespace {

void expect(bool holds) {
    if (!holds) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view target(reinterpret_cast<const char*>(data), size);
    std::array<char, ration::max_target_bytes> buffer;
    const auto first = ration::normal_target(target, buffer);
    if (!first.ok() || first->path == "*") {
        return 0;
    }
    const std::string path(first->path);
    std::array<char, ration::max_target_bytes> again_buffer;
    const auto again = ration::normal_target(path, again_buffer);
    expect(again.ok() && again->path == path && !again->has_query);

    expect(path.front() == '/' && path.find("//") == std::string::npos);
    const std::string closed = path + "/";
    expect(closed.find("/./") == std::string::npos && closed.find("/../") == std::string::npos);
    expect(path.find_first_of("\\;#? \r\n") == std::string::npos);

    // One decoding finds no further separators, dots or line ends.
    std::array<char, ration::max_target_bytes> decoded_buffer;
    const std::string_view decoded = ration::percent_decoded(path, decoded_buffer);
    std::size_t slashes = 0;
    for (const char c : path) {
        slashes += c == '/' ? 1 : 0;
    }
    for (const char c : decoded) {
        slashes -= c == '/' ? 1 : 0;
        expect(c != '\\' && static_cast<unsigned char>(c) >= 0x20);
    }
    expect(slashes == 0);
    return 0;
}
