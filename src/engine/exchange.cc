#include "engine/exchange.h"

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

}  // namespace ration
