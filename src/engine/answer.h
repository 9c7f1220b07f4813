// What ration says to a client: a whole answer of its own, or fields added to the upstream's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace ration {

// A complete answer made by ration itself.
struct Answer {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;  // no Content-Length, no Date
    std::string body;
};

// Takes header fields one by one; the views are good during the call only.
using FieldSink = absl::FunctionRef<void(std::string_view name, std::string_view value)>;

}  // namespace ration
