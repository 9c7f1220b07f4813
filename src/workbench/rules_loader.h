// Policy and directory from their files, with every problem of both.
//
// Thread rule: any thread. A problem in either file leaves nothing loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

struct Rules {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
};

// `env.NAME` of policies is answered by the process's environment.
[[nodiscard]] const char* process_environment(const char* name);

// A directory that knows nobody.
[[nodiscard]] std::shared_ptr<const Directory> empty_directory();

// `directory_path` empty: the empty directory. nullopt when `problems` got an error.
[[nodiscard]] std::optional<Rules> load_rules(const std::string& policy_path,
                                              const std::string& directory_path,
                                              Problems& problems);

}  // namespace ration
