// Problem: a policy may have hundreds of limits of which a given request meets two or three.
// Idea: everything about a limit that depends only on the route and the credential's kind (does it
// cover them, which numbers, which cost) is settled here; what is left for the request is the
// method, the key and stated costs. Rows that come out equal are stored once.
#include "engine/plan_table.h"

#include <algorithm>
#include <optional>

namespace ration {
namespace {

template <typename Value>
const Value* find_route(const std::vector<std::pair<RouteIndex, Value>>& by_route,
                        RouteIndex route) {
    for (const auto& [index, value] : by_route) {
        if (index == route) {
            return &value;
        }
    }
    return nullptr;
}

// The rule as it stands for the route, or nothing when it has no numbers there.
std::optional<Candidate> candidate_for(const Policy& policy, std::uint16_t index,
                                       RouteIndex route) {
    const LimitRule& rule = policy.limits[index];
    Candidate candidate{.rule = &rule, .index = index, .cost = rule.cost.fixed, .limit = {}};
    if (const LimitRef* own = find_route(rule.numbers.by_route, route)) {
        candidate.limit = *own;
    } else if (rule.numbers.fixed) {
        candidate.limit = *rule.numbers.fixed;
    } else if (!rule.numbers.attribute) {
        return std::nullopt;
    }
    if (const std::uint32_t* own = find_route(rule.cost.by_route, route)) {
        candidate.cost = *own;
    }
    const LimitKind kind = candidate.limit ? candidate.limit->kind : rule.numbers.shape.kind;
    candidate.settles = kind == LimitKind::concurrency || !rule.cost.response_header.empty() ||
                        rule.part == StrikePart::attempts;
    return candidate;
}

// The rule's numbers with an attribute in the place of the amount.
Limit with_amount(const Limit& shape, std::uint64_t amount) {
    Limit limit = shape;
    limit.amount = limit.capacity = amount;
    return limit;
}

// The largest amount that makes a valid limit of that shape (refill per second and records kept
// are bounded too).
std::uint64_t largest_amount(const Limit& shape) {
    std::uint64_t fits = 0;
    std::uint64_t too_much = max_amount + 1;
    while (too_much - fits > 1) {
        const std::uint64_t middle = fits + (too_much - fits) / 2;
        (validate(with_amount(shape, middle)).ok() ? fits : too_much) = middle;
    }
    return fits;
}

}  // namespace

PlanTable::PlanTable(const Policy& policy)
    : policy_(policy), route_count_(policy.routes.size()), kind_count_(policy.kinds.size()) {
    spans_.reserve((route_count_ + 1) * kind_count_);
    for (std::size_t row = 0; row <= route_count_; ++row) {
        const auto route = row == route_count_ ? no_route : static_cast<RouteIndex>(row);
        for (std::size_t kind = 0; kind < kind_count_; ++kind) {
            add_row(route, static_cast<KindIndex>(kind));
        }
    }
    for (const LimitRule& rule : policy.limits) {
        largest_.push_back(rule.numbers.attribute ? largest_amount(rule.numbers.shape) : 0);
    }
}

void PlanTable::add_row(RouteIndex route, KindIndex kind) {
    std::vector<Candidate> row;
    for (const bool shadow : {false, true}) {
        for (std::size_t i = 0; i < policy_.limits.size(); ++i) {
            const LimitRule& rule = policy_.limits[i];
            if (rule.shadow != shadow || !rule.covers(route) || !(rule.kinds & kind_bit(kind))) {
                continue;
            }
            if (const auto found = candidate_for(policy_, static_cast<std::uint16_t>(i), route)) {
                row.push_back(*found);
            }
        }
    }
    // Neighbouring kinds and routes mostly have the same limits: look for the row before this one.
    const std::size_t same = spans_.size();
    for (std::size_t back = 1; back <= std::min(same, kind_count_); ++back) {
        const Span span = spans_[same - back];
        if (std::equal(row.begin(), row.end(), pool_.begin() + span.first,
                       pool_.begin() + span.first + span.size)) {
            spans_.push_back(span);
            return;
        }
    }
    spans_.push_back(
        {static_cast<std::uint32_t>(pool_.size()), static_cast<std::uint32_t>(row.size())});
    pool_.insert(pool_.end(), row.begin(), row.end());
}

LimitRef PlanTable::from_attribute(std::uint16_t index, std::int64_t amount) const {
    const std::uint64_t said = amount < 0 ? 0 : static_cast<std::uint64_t>(amount);
    const Limit limit =
        with_amount(policy_.limits[index].numbers.shape, std::min(said, largest_[index]));
    return LimitRef::of(limit).value_or(LimitRef{});
}

}  // namespace ration
