#include "workbench/exchange_report.h"

namespace ration {

const char* to_string(ServiceOutcome outcome) {
    switch (outcome) {
        case ServiceOutcome::admitted:
            return "admitted";
        case ServiceOutcome::refused:
            return "refused";
        case ServiceOutcome::replayed:
            return "replayed";
        case ServiceOutcome::lost:
            return "lost";
    }
    return "";
}

void report_exchange(const Exchange& exchange, ServiceAnswer& answer) {
    if (const std::string_view rule = exchange.binding_name(); !rule.empty()) {
        answer.rule = rule;
    }
    if (exchange.decision.kind == Decision::Kind::refuse) {
        answer.wait = exchange.decision.wait;
    }
    const std::size_t known = exchange.outcome.count;
    for (std::size_t i = 0; i < exchange.charge_count && i < known; ++i) {
        const LimitRule& rule = exchange.policy().limits[exchange.rule_of[i]];
        answer.levels.push_back(
            {rule.name, to_string(*exchange.charges[i].limit), exchange.outcome.levels[i]});
    }
}

}  // namespace ration
