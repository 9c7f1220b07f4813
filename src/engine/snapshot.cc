#include "engine/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ration {

CorsText::CorsText(const Cors& cors)
    : expose(absl::StrJoin(cors.expose, ", ")),
      methods(absl::StrJoin(cors.methods, ", ")),
      headers(absl::StrJoin(cors.headers, ", ")),
      max_age(absl::StrCat(cors.max_age_seconds)) {}

std::shared_ptr<const Snapshot> Snapshot::prepare(std::shared_ptr<const Policy> policy,
                                                  std::shared_ptr<const Directory> directory,
                                                  Mono since, const Snapshot* before) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->plan = std::make_shared<const PlanTable>(*policy);
    snapshot->cors = std::make_shared<const CorsText>(policy->cors);
    snapshot->dates = std::make_shared<const ChangeDates>(*policy, *directory, before, since);
    snapshot->policy = std::move(policy);
    snapshot->directory = std::move(directory);
    snapshot->since = since;
    return snapshot;
}

}  // namespace ration
