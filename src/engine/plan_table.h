// Which limits can apply to a request, worked out once per (route, kind) when rules come into
// force.
//
// A request looks at the candidates of its own route and kind only, so its cost does not depend on
// how many limits the policy has for others. Immutable; thread rule: const, share freely.
// Ownership: points into the policy it was made from, which must outlive it.
//
//   for (const Candidate& candidate : table.candidates(route, kind)) ...
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"
#include "ration/limit.h"

namespace ration {

// One limit as it stands for one route: numbers and cost already looked up.
struct Candidate {
    const LimitRule* rule = nullptr;
    std::uint16_t index = 0;  // of the rule in Policy::limits
    std::uint32_t cost = 1;   // unless a request header says otherwise
    LimitRef limit;           // null: the numbers come from an attribute of the request's subject
    bool settles = false;     // something is left to do when the request ends

    friend bool operator==(const Candidate&, const Candidate&) = default;
};

class PlanTable {
public:
    explicit PlanTable(const Policy& policy);

    // Enforced limits in policy order, then those in shadow.
    [[nodiscard]] std::span<const Candidate> candidates(RouteIndex route, KindIndex kind) const {
        const std::size_t row = route == no_route ? route_count_ : route;
        const Span span = spans_[row * kind_count_ + kind];
        return {pool_.data() + span.first, span.size};
    }

    // The limit of rule `index` when its attribute says `amount`. An amount outside the bounds of
    // limits never turns into no limit: below 0 it admits nothing, above them it is the largest
    // there is. Null only when the process has no room for another limit.
    [[nodiscard]] LimitRef from_attribute(std::uint16_t index, std::int64_t amount) const;

private:
    struct Span {
        std::uint32_t first = 0;
        std::uint32_t size = 0;
    };

    void add_row(RouteIndex route, KindIndex kind);

    const Policy& policy_;
    std::size_t route_count_;
    std::size_t kind_count_;
    std::vector<Span> spans_;  // by route (unmatched last), then kind
    std::vector<Candidate> pool_;
    std::vector<std::uint64_t> largest_;  // by rule: the largest amount an attribute can say
};

}  // namespace ration
