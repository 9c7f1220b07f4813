// The type and the wait in an error's JSON body.
//
// The JSON library refuses a whole document for one byte that is not UTF-8, for half of a surrogate
// pair or for a number that no double holds. A refusal must not lose its type for a message in
// Latin-1, so such places are mended before it reads; what is not JSON for other reasons stays so.
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"
#include "client/hints.h"
#include "nlohmann/json.hpp"
#include "ration/client.h"

namespace ration::client {
namespace {

using Json = nlohmann::json;

constexpr std::string_view number_characters = "+-.0123456789Ee";

// The code unit that an escape \uXXXX at the front of `text` names; -1: there is none.
int escaped_unit(std::string_view text) {
    if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') {
        return -1;
    }
    const std::string digits(text.substr(2, 4));
    char* end = nullptr;
    const long unit = std::strtol(digits.c_str(), &end, 16);
    return end == digits.c_str() + 4 && digits[0] != '-' && digits[0] != '+' && digits[0] != ' '
               ? static_cast<int>(unit)
               : -1;
}

// The escape at the front of `text`, half of a surrogate pair replaced; `taken` is its length.
std::string whole_escape(std::string_view text, std::size_t& taken) {
    const int unit = escaped_unit(text);
    const bool high = unit >= 0xd800 && unit <= 0xdbff;
    const bool low = unit >= 0xdc00 && unit <= 0xdfff;
    if (high) {
        const int next = escaped_unit(text.substr(6));
        if (next >= 0xdc00 && next <= 0xdfff) {
            taken = 12;
            return std::string(text.substr(0, 12));
        }
    }
    taken = high || low ? 6 : std::min<std::size_t>(2, text.size());
    return high || low ? "\\ufffd" : std::string(text.substr(0, taken));
}

// A number that only overflows becomes the largest there is.
std::string finite(std::string_view number) {
    std::string text(number);
    if (text.front() == '+' || text.front() == '.') {
        return text;  // no number of JSON
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() || std::isfinite(value)) {
        return text;
    }
    return value > 0 ? "1e308" : "-1e308";
}

// `body` as the JSON library takes it.
std::string mended(std::string_view body) {
    std::string text;
    text.reserve(body.size());
    bool quoted = false;
    while (!body.empty()) {
        std::size_t taken = utf8_length(body);
        if (taken == 0) {
            text += '?';
            taken = 1;
        } else if (quoted && body.front() == '\\') {
            text += whole_escape(body, taken);
        } else if (!quoted && number_characters.find(body.front()) != std::string_view::npos) {
            taken = std::min(body.find_first_not_of(number_characters), body.size());
            text += finite(body.substr(0, taken));
        } else {
            quoted = quoted != (body.front() == '"');
            text += body.substr(0, taken);
        }
        body.remove_prefix(taken);
    }
    return text;
}

// What follows a zero byte would not be looked at; JSON has none.
Json read_json(std::string_view body) {
    if (body.find('\0') != std::string_view::npos) {
        return Json(Json::value_t::discarded);
    }
    Json json = Json::parse(body, nullptr, false);
    return json.is_discarded() ? Json::parse(mended(body), nullptr, false) : json;
}

const Json* member(const Json& object, const char* name) {
    if (!object.is_object()) {
        return nullptr;
    }
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

std::string type_of(const Json& body) {
    const Json* error = member(body, "error");
    for (const Json* candidate :
         {error ? member(*error, "type") : nullptr, error, member(body, "type")}) {
        if (candidate && candidate->is_string()) {
            return candidate->get<std::string>();
        }
    }
    return {};
}

// A delay; the numbers of a body are never clock times. JSON's fractions are binary: they are
// converted here and rounded up.
std::optional<Nanos> wait_of(const Json& value) {
    if (value.is_string()) {
        const std::string& text = value.get_ref<const std::string&>();
        const auto number = parse_delay_or_moment(trim_blanks(text), Wall{});
        return number && number->wait > Nanos(0) ? std::optional(number->wait) : std::nullopt;
    }
    if (value.is_number_unsigned() || value.is_number_integer()) {
        const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > 1'000'000'000;
        const std::int64_t seconds = huge ? 1'000'000'000 : value.get<std::int64_t>();
        if (seconds <= 0) {
            return std::nullopt;
        }
        const auto most = std::chrono::floor<std::chrono::seconds>(longest_hint).count();
        return Nanos(std::chrono::seconds(std::min<std::int64_t>(seconds, most)));
    }
    if (!value.is_number_float() || !(value.get<double>() > 0)) {
        return std::nullopt;
    }
    const double nanos = std::ceil(value.get<double>() * 1e9);
    const auto most = static_cast<double>(longest_hint.count());
    return nanos < most ? Nanos(static_cast<std::int64_t>(nanos)) : longest_hint;
}

}  // namespace

ErrorBody read_error_body(std::string_view body) {
    ErrorBody read;
    if (body.empty() || body.size() > max_error_type_body_bytes) {
        return read;
    }
    const Json json = read_json(body);
    if (!json.is_object()) {
        return read;
    }
    read.type = type_of(json);
    const Json* error = member(json, "error");
    for (const Json* holder : {&json, error}) {
        for (const char* name : {"retry_after", "retry_after_seconds"}) {
            const Json* value = holder ? member(*holder, name) : nullptr;
            if (value && !read.wait) {
                read.wait = wait_of(*value);
            }
        }
    }
    return read;
}

}  // namespace ration::client
