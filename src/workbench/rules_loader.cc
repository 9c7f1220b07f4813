#include "workbench/rules_loader.h"

#include <cstdlib>

namespace ration {

const char* process_environment(const char* name) {
    return std::getenv(
        name);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
}

std::shared_ptr<const Directory> empty_directory() {
    Problems problems;
    return Directory::parse("", "{}", problems);
}

std::optional<Rules> load_rules(const std::string& policy_path, const std::string& directory_path,
                                Problems& problems) {
    Rules rules;
    rules.directory =
        directory_path.empty() ? empty_directory() : Directory::load(directory_path, problems);
    rules.policy = Policy::load(policy_path, process_environment, problems, rules.directory.get());
    if (!problems.ok() || rules.policy == nullptr || rules.directory == nullptr) {
        return std::nullopt;
    }
    return rules;
}

}  // namespace ration
