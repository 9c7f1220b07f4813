// The rules in force: policy and directory that belong together, since when, and what was worked
// out from them once so that no request has to.
//
// Immutable once made; thread rule: const, share freely.
#pragma once

#include <memory>
#include <string>

#include "engine/change_dates.h"
#include "engine/plan_table.h"
#include "policy/directory.h"
#include "policy/policy.h"
#include "ration/time.h"

namespace ration {

// The policy's CORS lists as they stand in a header.
struct CorsText {
    explicit CorsText(const Cors& cors);

    std::string expose;
    std::string methods;
    std::string headers;
    std::string max_age;
};

struct Snapshot {
    std::shared_ptr<const Policy> policy;
    std::shared_ptr<const Directory> directory;
    Mono since{};  // when they came into force
    // Made by `prepare`; the engine sees to it that every snapshot in force has them.
    std::shared_ptr<const PlanTable> plan;
    std::shared_ptr<const CorsText> cors;
    std::shared_ptr<const ChangeDates> dates;

    // `before`: the rules whose place they take; null: they are the first.
    [[nodiscard]] static std::shared_ptr<const Snapshot> prepare(
        std::shared_ptr<const Policy> policy, std::shared_ptr<const Directory> directory,
        Mono since, const Snapshot* before = nullptr);
};

}  // namespace ration
