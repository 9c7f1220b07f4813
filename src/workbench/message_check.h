// Whether text can stand in an HTTP message at all: what no request on a wire could carry is wrong
// input to the workbench, not a request. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace ration {

// Empty, or why `name: value` cannot be a header field.
[[nodiscard]] std::string wrong_field(std::string_view name, std::string_view value);

}  // namespace ration
