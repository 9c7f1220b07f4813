#include "workbench/message_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "workbench/json_cursor.h"

namespace ration {

bool is_http_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string wrong_field(std::string_view name, std::string_view value) {
    if (!is_http_token(name)) {
        return cat(json_quoted(name), " is not the name of a header");
    }
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
            return cat("the header ", name, " has a control character");
        }
    }
    return {};
}

}  // namespace ration
