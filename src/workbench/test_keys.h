// The words of test files.
#pragma once

#include "policy/keys.h"

namespace ration {

extern const KeyTable test_file_keys;
extern const KeyTable test_case_keys;
extern const KeyTable test_request_keys;
extern const KeyTable test_reload_keys;
extern const KeyTable test_counters_keys;
extern const KeyTable test_restart_keys;
extern const KeyTable test_wall_keys;
extern const KeyTable test_upstream_keys;
extern const KeyTable test_probe_keys;
extern const KeyTable test_expect_keys;
extern const KeyTable test_sent_keys;

}  // namespace ration
