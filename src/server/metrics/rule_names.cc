#include "server/metrics/rule_names.h"

#include <algorithm>
#include <atomic>

namespace ration {

namespace {

// A thread's latest answer. It keeps the policy alive, so its address can not be another's.
struct CachedSlots {
    std::uint64_t owner = 0;
    std::shared_ptr<const Policy> policy;
    std::vector<std::uint16_t> slots;
};

thread_local CachedSlots cached;

std::uint64_t next_identity() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

constexpr auto other_slot = static_cast<std::uint16_t>(max_rule_series - 1);

}  // namespace

RuleNames::RuleNames() : identity_(next_identity()) {}

const std::vector<std::uint16_t>& RuleNames::slots(const std::shared_ptr<const Policy>& policy) {
    if (cached.owner == identity_ && cached.policy == policy) {
        return cached.slots;
    }
    const std::lock_guard lock(mutex_);
    cached.owner = identity_;
    cached.policy = policy;
    cached.slots.clear();
    const auto add = [this](const auto& rules) {
        for (const auto& rule : rules) {
            cached.slots.push_back(slot_of(rule.name));
        }
    };
    add(policy->limits);
    add(policy->ceilings);
    add(policy->quotas);
    add(policy->idempotency);
    return cached.slots;
}

std::uint16_t RuleNames::slot(std::string_view name) {
    const std::lock_guard lock(mutex_);
    return slot_of(std::string(name));
}

std::uint16_t RuleNames::slot_of(const std::string& name) {
    if (const auto found = slots_.find(name); found != slots_.end()) {
        return found->second;
    }
    if (slots_.size() == other_slot) {
        other_used_ = true;
        return other_slot;
    }
    const auto slot = static_cast<std::uint16_t>(slots_.size());
    slots_.emplace(name, slot);
    return slot;
}

std::vector<std::pair<std::uint16_t, std::string>> RuleNames::names() const {
    std::vector<std::pair<std::uint16_t, std::string>> names;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, slot] : slots_) {
            names.emplace_back(slot, name);
        }
        if (other_used_) {
            names.emplace_back(other_slot, other_rules);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace ration
