#include "server/admin/policy_json.h"

#include <string>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "server/access_log/json_text.h"
#include "server/admin/durable_json.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

std::string_view limit_kind(LimitKind kind) {
    switch (kind) {
        case LimitKind::token_bucket:
            return "token_bucket";
        case LimitKind::fixed_window:
            return "fixed_window";
        case LimitKind::sliding_window:
            return "sliding_window";
        case LimitKind::sliding_counter:
            return "sliding_counter";
        case LimitKind::concurrency:
            return "concurrency";
    }
    return "";
}

std::string_view store_down_text(StoreDown choice) {
    switch (choice) {
        case StoreDown::open:
            return "open";
        case StoreDown::closed:
            return "closed";
        case StoreDown::local:
            return "local";
    }
    return "";
}

// "60/min", or one such text for each route that has its own, or where the number comes from.
Json numbers_json(const Policy& policy, const Numbers& numbers) {
    Json json = Json::object();
    if (numbers.fixed.has_value()) {
        json["default"] = to_string(**numbers.fixed);
    }
    for (const auto& [route, limit] : numbers.by_route) {
        json[policy.routes[route].name] = to_string(*limit);
    }
    if (numbers.attribute.has_value()) {
        json["from"] = selector_text(*numbers.attribute);
    }
    return json;
}

Json strike_json(const Policy& policy, const StrikeRule& rule) {
    const LimitRule& block = policy.limits[rule.block];
    const LimitRule& attempts = policy.limits[rule.attempts];
    return {{"name", rule.name},
            {"failures", to_string(*rule.failures)},
            {"failed", rule.failed},
            {"per", selectors_json(attempts.key)},
            {"routes", route_names_json(policy, attempts.routes)},
            {"credentials", kinds_json(policy, attempts.kinds)},
            {"blocks", route_names_json(policy, block.routes)},
            {"first_block_seconds", rule.levels.front().seconds},
            {"longest_block_seconds", rule.levels.back().seconds},
            {"cleared_by_success", rule.cleared_by_success},
            {"refuse", policy.refusals[block.refusal].name},
            {"store_down", store_down_text(block.store_down)}};
}

Json limit_json(const Policy& policy, const LimitRule& rule) {
    const Numbers& numbers = rule.numbers;
    const LimitKind kind = numbers.fixed.has_value()   ? (*numbers.fixed)->kind
                           : !numbers.by_route.empty() ? numbers.by_route[0].second->kind
                                                       : numbers.shape.kind;
    Json json{{"name", rule.name},
              {"kind", limit_kind(kind)},
              {"numbers", numbers_json(policy, numbers)},
              {"per", selectors_json(rule.key)},
              {"routes", route_names_json(policy, rule.routes)},
              {"methods", rule.methods.empty() ? Json("any") : Json(rule.methods)},
              {"credentials", kinds_json(policy, rule.kinds)},
              {"refuse", policy.refusals[rule.refusal].name},
              {"store_down", store_down_text(rule.store_down)},
              {"shadow", rule.shadow}};
    return json;
}

}  // namespace

Json kinds_json(const Policy& policy, KindSet kinds) {
    if (kinds == all_kinds) {
        return "any";
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < policy.kinds.size(); ++i) {
        if ((kinds & kind_bit(static_cast<KindIndex>(i))) != 0) {
            list.push_back(policy.kinds[i]);
        }
    }
    return list;
}

Json route_names_json(const Policy& policy, const std::vector<bool>& routes) {
    Json names = Json::array();
    for (std::size_t i = 0; i < routes.size(); ++i) {
        if (routes[i]) {
            names.push_back(policy.routes[i].name);
        }
    }
    return routes.empty() ? Json("any") : names;
}

Json selectors_json(const std::vector<Selector>& key) {
    Json parts = Json::array();
    for (const Selector& selector : key) {
        parts.push_back(selector_text(selector));
    }
    return parts;
}

std::string selector_text(const Selector& selector) {
    switch (selector.source) {
        case Selector::Source::route:
            return "route";
        case Selector::Source::method:
            return "method";
        case Selector::Source::address:
            return "address";
        case Selector::Source::credential:
            return "credential";
        case Selector::Source::entity:
            return selector.name;
        case Selector::Source::attribute:
            return absl::StrJoin(selector.path, ".");
        case Selector::Source::path:
            return cat("path.", selector.name);
        case Selector::Source::query:
            return cat("query.", selector.name);
        case Selector::Source::header:
            return cat("header.", selector.name);
        case Selector::Source::body:
            return cat("body.", selector.name);
    }
    return "";
}

std::string log_time(Wall at) {
    std::string quoted;
    append_json_time(quoted, at);
    return quoted.substr(1, quoted.size() - 2);
}

Json policy_json(const InForce& in_force) {
    const Policy& policy = *in_force.rules.policy;
    Json routes = Json::array();
    for (const Route& route : policy.routes) {
        routes.push_back({{"name", route.name},
                          {"patterns", route.patterns},
                          {"accepts", kinds_json(policy, route.accepts)}});
    }
    Json limits = Json::array();
    for (const LimitRule& rule : policy.limits) {
        if (rule.part == StrikePart::none) {
            limits.push_back(limit_json(policy, rule));
        }
    }
    Json strikes = Json::array();
    for (const StrikeRule& rule : policy.strikes) {
        strikes.push_back(strike_json(policy, rule));
    }
    Json refusals = Json::array();
    for (const Refusal& refusal : policy.refusals) {
        refusals.push_back({{"name", refusal.name}, {"status", refusal.status}});
    }
    Json json{{"policy", policy.name},
              {"file", in_force.config.policy},
              {"digest", in_force.rules.policy_digest},
              {"loaded_at", log_time(in_force.loaded_at)}};
    if (!in_force.config.directory.empty()) {
        json["directory"] = {{"file", in_force.config.directory},
                             {"digest", in_force.rules.directory_digest},
                             {"credentials", in_force.rules.directory->credentials().size()},
                             {"entities", in_force.rules.directory->entity_count()}};
    }
    json["routes"] = std::move(routes);
    json["limits"] = std::move(limits);
    json["strikes"] = std::move(strikes);
    json["ceilings"] = ceilings_json(policy);
    json["quotas"] = quotas_json(policy);
    json["idempotency"] = idempotency_json(policy);
    json["refusals"] = std::move(refusals);
    return json;
}

}  // namespace ration
