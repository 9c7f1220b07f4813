// What a command prints of the admin listener's answer.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/admin_client.h"

namespace ration {

// Asks; on a 2xx prints the body as it is with `json`, else by `print`. What the server refuses
// goes to standard error. The command's exit code: 0; 1 for 404, 409 and 422, the answers that say
// no; 2 for everything else, also when nobody answers.
[[nodiscard]] int ask_and_print(const AdminOptions& admin, bool json, const AdminQuestion& question,
                                const std::function<void(const nlohmann::ordered_json&)>& print);

}  // namespace ration
