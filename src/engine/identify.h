// Step 1: who is calling. The key of everything later is the identity accepted here, never the
// header text it was read from.
#pragma once

#include "engine/exchange.h"
#include "policy/issued.h"

namespace ration {

// Fills in `kind` and `credential`. `issued` (may be null) is asked after the directory. Presented
// nothing, or a session nobody has: anonymous; presented something that is nobody's: unknown.
void identify(Exchange& exchange, IssuedCredentials* issued);

}  // namespace ration
