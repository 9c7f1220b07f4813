// What a decided request tells people: the rule, the exact wait, and each limit's level.
#pragma once

#include "engine/engine.h"
#include "workbench/message.h"

namespace ration {

// Fills `rule`, `wait` and `levels` of `answer` from what the engine found out.
void report_exchange(const Exchange& exchange, ServiceAnswer& answer);

}  // namespace ration
