#include "engine/exchange.h"

#include "engine/durable.h"
#include "engine/engine.h"

namespace ration {

Exchange::~Exchange() {
    if (open) {
        engine->finish(*this, {.kind = Ending::Kind::client_gone}, arrived);
    }
}

const LimitRule* Exchange::binding_rule() const {
    return decision.rule < 0 ? nullptr : &policy().limits[static_cast<std::size_t>(decision.rule)];
}

std::string_view Exchange::binding_name() const {
    if (durable != nullptr && !durable->refused_by().empty()) {
        return durable->refused_by();
    }
    const LimitRule* rule = binding_rule();
    return rule == nullptr ? std::string_view{} : std::string_view(rule->name);
}

}  // namespace ration
