#include "base/json_ascii.h"

#include <string_view>

namespace ration {

void append_json_byte(std::string& out, unsigned char byte) {
    constexpr std::string_view hex = "0123456789abcdef";
    out += "\\u00";
    out += hex[byte >> 4U];
    out += hex[byte & 15U];
}

void append_json_ascii(std::string& out, char c) {
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20U || byte == 0x7fU) {
        append_json_byte(out, byte);
    } else {
        out += c;
    }
}

}  // namespace ration
