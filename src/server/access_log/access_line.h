// One finished request as one line of JSON.
//
// Never holds a secret: a credential is told by its kind and fingerprint, a credential that nobody
// owns by its kind alone; the query is left out, and so is the path of a request that could not be
// read. Units: `wait` in seconds, `*_ms` in milliseconds, both exact decimals. Thread rule: pure.
// Bounds: text that callers choose is cut at `max_logged_text` bytes, so a line stays below
// `max_line_bytes`. Docs: docs/operating.md lists the fields.
#pragma once

#include <string>

#include "server/request_record.h"

namespace ration {

inline constexpr std::size_t max_logged_text = 2048;      // of a path, bytes before escaping
inline constexpr std::size_t max_line_bytes = 32 * 1024;  // nothing reaches it; checked by a test

// Appends the line and its '\n'.
void append_access_line(std::string& out, const RequestRecord& record);

}  // namespace ration
