// One ASCII character of a JSON string (RFC 8259, section 7).
#pragma once

#include <string>

namespace ration {

// Appends `c` as it stands inside the quotes: `"`, `\` and control characters (DEL with them) are
// escaped, the rest stands for itself. `c` must be below 0x80.
void append_json_ascii(std::string& out, char c);

// Appends \u00XX for any byte.
void append_json_byte(std::string& out, unsigned char byte);

}  // namespace ration
