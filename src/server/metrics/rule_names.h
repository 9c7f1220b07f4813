// Gives each rule name ever in force a slot to count in, so that the label values of the metrics
// come from policies only and stay bounded over any number of reloads.
//
// Thread rule: any thread may call anything. The first `max_rule_series - 1` names keep their slot
// for the life of the process; later ones share the last slot, named "(other)".
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "policy/policy.h"

namespace ration {

inline constexpr std::size_t max_rule_series = 1024;
inline constexpr const char* other_rules = "(other)";

class RuleNames {
public:
    RuleNames();

    // The slot of one rule, by its name; takes a lock.
    [[nodiscard]] std::uint16_t slot(std::string_view name);
    // Slots of the policy's limits, then its ceilings, quotas and idempotency rules, each in their
    // order. The result is cached per thread: a thread that asks again for the same policy takes no
    // lock and allocates nothing. Good until the thread's next call.
    [[nodiscard]] const std::vector<std::uint16_t>& slots(
        const std::shared_ptr<const Policy>& policy);

    // Names by slot, "(other)" included once it is in use.
    [[nodiscard]] std::vector<std::pair<std::uint16_t, std::string>> names() const;

private:
    [[nodiscard]] std::uint16_t slot_of(const std::string& name);  // under the mutex

    const std::uint64_t identity_;  // tells this object's cached slots from another's
    mutable std::mutex mutex_;
    absl::flat_hash_map<std::string, std::uint16_t> slots_;
    bool other_used_ = false;
};

}  // namespace ration
