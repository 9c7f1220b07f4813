#include "server/admin/durable_json.h"

#include <string>
#include <string_view>

#include "absl/strings/str_join.h"
#include "base/text.h"
#include "server/admin/policy_json.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

Json at_most_json(const AtMost& at_most) {
    return at_most.attribute.empty() ? Json(at_most.fixed)
                                     : Json{{"from", absl::StrJoin(at_most.attribute, ".")}};
}

std::string_view period_text(PeriodLength length) {
    switch (length) {
        case PeriodLength::month:
            return "month";
        case PeriodLength::quarter:
            return "quarter";
        case PeriodLength::year:
            return "year";
    }
    return "";
}

std::string_view doubt_text(DoubtRule doubt) {
    switch (doubt) {
        case DoubtRule::forward:
            return "forward";
        case DoubtRule::refuse:
            return "refuse";
        case DoubtRule::probe:
            return "probe";
    }
    return "";
}

// Where its days or periods begin: a zone, or the attribute that names it.
Json zone_json(const CeilingRule& rule) {
    if (!rule.zone_attribute.empty()) {
        return {{"from", absl::StrJoin(rule.zone_attribute, ".")}};
    }
    return rule.zone.empty() ? Json(nullptr) : Json(rule.zone);
}

Json scope_json(const Policy& policy, const DurableScope& scope) {
    return {{"name", scope.name},
            {"routes", route_names_json(policy, scope.routes)},
            {"credentials", kinds_json(policy, scope.kinds)},
            {"per", selectors_json(scope.key)}};
}

Json objects_json(const Policy& policy, const std::vector<ObjectId>& ids) {
    Json list = Json::array();
    for (const ObjectId& id : ids) {
        list.push_back({{"route", policy.routes[id.route].name},
                        {"object", cat(id.in_body ? "body." : "path.", id.name)}});
    }
    return list;
}

Json quota_refusals_json(const Policy& policy, const QuotaRule& rule) {
    Json names{{"default", policy.refusals[rule.refusal].name}};
    for (const auto& [kind, refusal] : rule.refusal_by_kind) {
        names[policy.kinds[kind]] = policy.refusals[refusal].name;
    }
    return names;
}

}  // namespace

Json ceilings_json(const Policy& policy) {
    Json list = Json::array();
    for (const CeilingRule& rule : policy.ceilings) {
        Json json = scope_json(policy, rule);
        const bool daily = rule.kind == CeilingKind::local_day;
        json["at_most"] = at_most_json(rule.at_most);
        json["period"] = daily ? "day" : period_text(rule.length);
        json["zone"] = zone_json(rule);
        if (!daily) {
            json["anchor"] = {{"from", absl::StrJoin(rule.anchor_attribute, ".")}};
        }
        json["refuse"] = policy.refusals[rule.refusal].name;
        list.push_back(std::move(json));
    }
    return list;
}

Json quotas_json(const Policy& policy) {
    Json list = Json::array();
    for (const QuotaRule& rule : policy.quotas) {
        Json json = scope_json(policy, rule);
        json["at_most"] = at_most_json(rule.at_most);
        json["up"] = objects_json(policy, rule.up);
        json["down"] = objects_json(policy, rule.down);
        json["refuse"] = quota_refusals_json(policy, rule);
        list.push_back(std::move(json));
    }
    return list;
}

Json idempotency_json(const Policy& policy) {
    Json list = Json::array();
    for (const IdempotencyRule& rule : policy.idempotency) {
        Json json = scope_json(policy, rule);
        json["header"] = rule.header;
        json["required"] = rule.required;
        json["keep_seconds"] = std::chrono::duration<double>(rule.keep).count();
        json["doubt"] = doubt_text(rule.doubt);
        json["compare"] = rule.comparison == BodyComparison::bytes ? "bytes" : "by_value";
        json["max_body"] = rule.max_body;
        json["max_answer"] = rule.max_answer;
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace ration
