// Templates of any text, filled with any text. The input: the template, a line end, the value.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/template.h"

namespace {

void expect(bool holds) {
    if (!holds) {
        std::abort();
    }
}

// A JSON string from end to end, with nothing after it.
bool is_json_string(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
        return false;
    }
    text = text.substr(1, text.size() - 2);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"' || static_cast<unsigned char>(text[i]) < 0x20) {
            return false;
        }
        if (text[i] == '\\' && (++i == text.size() || std::string_view("\"\\nrtu").find(text[i]) ==
                                                          std::string_view::npos)) {
            return false;
        }
    }
    return true;
}

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view source = input.substr(0, end);
    const std::string_view value = input.substr(std::min(end + 1, input.size()));

    ration::HoleValues values;
    values.limit = size;
    values.retry_after = 1;
    values.wait = "0.5";
    values.rule = values.type = values.message = values.request_id = value;

    std::string error;
    const ration::Template header = ration::Template::text(source, error);
    if (error.empty()) {
        std::string out = "before";
        const bool there = header.append_to(out, values);
        expect(there || out == "before");
        expect(out.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    }
    const ration::Template body =
        ration::Template::json(ration::Template::json_scalar(source, error));
    if (error.empty()) {
        std::string out;
        const bool there = body.append_to(out, values);
        expect(there ? is_json_string(out) || is_number(out) : out.empty());
    }
    return 0;
}
