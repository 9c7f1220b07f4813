// The real gateway under test: over loopback sockets, on a clock that is moved by hand, in front of
// a scripted upstream.
//
// One request runs at a time. What needs an upstream that takes virtual time, or a peer that a
// loopback connection cannot stand for, cannot run here; `over_http().cannot_run` says so.
#pragma once

#include "workbench/test_run.h"

namespace ration {

[[nodiscard]] TestBedKind over_http();

}  // namespace ration
