// An answer as one line of replay output: JSON, members in a fixed order, numbers exact.
#pragma once

#include <string>
#include <string_view>

#include "workbench/message.h"

namespace ration {

// `id` and `at` are JSON as the request line had them. No line end.
[[nodiscard]] std::string answer_line(std::string_view id, std::string_view at,
                                      const ServiceAnswer& answer);

}  // namespace ration
