// How a loopback connection stands for a peer with another address.
//
// Where the policy reads X-Forwarded-For and trusts 127.0.0.1, the peer's address is appended
// there, as a proxy in front would. Elsewhere a case can still run when all its requests come from
// one address that nothing in it depends on: 127.0.0.1 is as good as any. Pure.
#pragma once

#include <string>

#include "policy/policy.h"
#include "workbench/test_file.h"

namespace ration {

// Empty, or why the case needs the engine in process.
[[nodiscard]] std::string why_not_over_loopback(const TestCase& test);

// Makes a request from 127.0.0.1 say who its peer is.
void stand_in_for_peer(const Policy& policy, ServiceRequest& request);

}  // namespace ration
