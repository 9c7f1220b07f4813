#include <string>

#include "base/text.h"
#include "nlohmann/json.hpp"
#include "workbench/expectation.h"

namespace ration {

namespace {

using Json = nlohmann::json;

std::string shown(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the expectation in the file, which is bounded.
std::string difference(const Json& expected, const Json& got, const std::string& path) {
    if (!expected.is_object() || !got.is_object()) {
        if (expected == got && expected.type() == got.type()) {
            return {};
        }
        return cat(path.empty() ? "" : path + ": ", "expected ", shown(expected), ", got ",
                   shown(got));
    }
    for (const auto& [name, value] : expected.items()) {
        const std::string inner = path.empty() ? name : cat(path, ".", name);
        const auto found = got.find(name);
        if (found == got.end()) {
            return cat(inner, ": expected ", shown(value), ", but there is no such member");
        }
        if (std::string inside = difference(value, *found, inner); !inside.empty()) {
            return inside;
        }
    }
    return {};
}

}  // namespace

std::string json_difference(const std::string& expected, const std::string& got) {
    const Json want = Json::parse(expected, nullptr, false);
    const Json have = Json::parse(got, nullptr, false);
    if (have.is_discarded()) {
        return "the body is not JSON";
    }
    return difference(want, have, "");
}

}  // namespace ration
