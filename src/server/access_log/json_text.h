// The few JSON values an access log line is made of, appended to a string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ration/time.h"

namespace ration {

// "text", quoted and escaped, cut at `most` bytes (a cut text ends in "..."). Bytes that are not
// part of well-formed UTF-8 come out as \u00XX, so the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text, std::size_t most);

void append_json_number(std::string& out, std::int64_t value);

// Exact decimals without trailing zeros; 1.5 ms is 0.0015 in seconds and 1.5 in milliseconds.
void append_json_seconds(std::string& out, Nanos value);
void append_json_millis(std::string& out, Nanos value);

// "2026-11-30T09:15:02.123Z", quoted: RFC 3339 in UTC, milliseconds rounded down.
void append_json_time(std::string& out, Wall at);

}  // namespace ration
