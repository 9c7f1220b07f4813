// Any bytes as a policy and as a directory: either there is an error with a reason, or there is a
// policy whose every index points at something.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/check.h"
#include "policy/directory.h"
#include "policy/policy.h"

namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_indices(const ration::Policy& policy) {
    for (const ration::LimitRule& rule : policy.limits) {
        require(rule.refusal < policy.refusals.size());
        require(rule.routes.empty() || rule.routes.size() == policy.routes.size());
        require(rule.numbers.fixed.has_value() || !rule.numbers.by_route.empty() ||
                rule.numbers.attribute.has_value());
        for (const auto& [route, limit] : rule.numbers.by_route) {
            require(route < policy.routes.size() && ration::validate(*limit).ok());
        }
    }
    for (const ration::KindIndex kind : policy.kind_of_rule) {
        require(kind < policy.kinds.size());
    }
    for (std::size_t i = 0; i < policy.built_in.size(); ++i) {
        require(!policy.answer(static_cast<ration::BuiltIn>(i)).name.empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ration::Problems of_policy;
    const auto policy = ration::Policy::parse("p", text, nullptr, of_policy);
    require((policy != nullptr) == of_policy.ok());
    ration::Problems of_directory;
    const auto directory = ration::Directory::parse("d", text, of_directory);
    require((directory != nullptr) == of_directory.ok());
    if (policy != nullptr) {
        check_indices(*policy);
        const auto empty = ration::Directory::parse("d", "entities: {}", of_directory);
        ration::check(*policy, empty.get(), of_policy);
        require(of_policy.ok());
    }
    return 0;
}
