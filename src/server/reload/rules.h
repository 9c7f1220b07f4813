// Policy and directory read from their files, with a digest of each file's text.
//
// Thread rule: plain values. Errors: all problems of both files, with positions; the result is then
// empty and nothing else has changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {

struct LoadedRules {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
    std::string policy_digest;     // "sha256:" and 64 hexadecimal digits
    std::string directory_digest;  // empty without a directory file
};

struct RuleFiles {
    std::string policy;
    std::string directory;  // empty: none; nobody has a credential then
    bool ledger = false;    // there is one: the policy may have rules that need it
    bool redis = false;     // the counters are there: the policy's numbers have to fit
};

[[nodiscard]] std::optional<LoadedRules> load_rule_files(const RuleFiles& files,
                                                         Policy::Environment environment,
                                                         Problems& problems);

// "sha256:..." of the text.
[[nodiscard]] std::string text_digest(std::string_view text);

}  // namespace ration
