// The policy language as a JSON Schema (draft 2020-12), for editors.
//
// Made from the same tables as the parser's own checks (policy/keys.h). Pure.
#pragma once

#include <string>

namespace ration {

// Indented by two blanks, with a newline at the end.
[[nodiscard]] std::string policy_schema();

}  // namespace ration
