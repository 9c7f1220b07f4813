// The script that every transaction runs (script.lua and what follows it), as built in.
#pragma once

#include <string_view>

namespace ration {

[[nodiscard]] std::string_view redis_script();
[[nodiscard]] std::string_view redis_script_sha();  // SHA-1, as EVALSHA names it

}  // namespace ration
