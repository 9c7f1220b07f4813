// The type and the wait in an error's JSON body.
#include <cmath>

#include "client/hints.h"
#include "nlohmann/json.hpp"
#include "ration/client.h"

namespace ration::client {
namespace {

using Json = nlohmann::json;

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
    const Json json = Json::parse(body, nullptr, false);
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
