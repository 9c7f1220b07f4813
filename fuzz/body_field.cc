// Any body under either content type: no crash, and a value within its bound and already in its
// one spelling.
#include "request/body_field.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    for (const std::string_view type : {std::string_view("application/json"),
                                        std::string_view("application/x-www-form-urlencoded")}) {
        std::array<char, ration::max_body_field_bytes> room;
        const auto value = ration::body_field({body, type}, "email", room);
        if (value && (value->size() > room.size() ||
                      value->find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != value->npos ||
                      value->starts_with(' '))) {
            std::abort();
        }
    }
    return 0;
}
