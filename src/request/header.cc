#include "request/header.h"

#include "wire/hop_fields.h"

namespace ration {

const Header* find_header(std::span<const Header> headers, std::string_view name) {
    for (const Header& header : headers) {
        if (equal_ignoring_case(header.name, name)) {
            return &header;
        }
    }
    return nullptr;
}

std::string_view without_blanks(std::string_view text) {
    return trimmed(text);
}

}  // namespace ration
