// One line of replay input: a request or a control event.
//
// Pure; any thread. Errors carry the column (in bytes, from 1) and a reason.
//
//   {"at":1.5,"method":"GET","path":"/v1/quote","peer":"198.51.100.7","response":{"takes":2}}
//   {"at":"2026-03-01T12:00:00Z","event":"policy","file":"new.yaml"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ration/time.h"
#include "workbench/message.h"

namespace ration {

inline constexpr std::size_t max_replay_line_bytes = 16 << 20;

struct ReplayEvent {
    enum class Kind : std::uint8_t { restart, policy, counters_down, counters_up };
    Kind kind = Kind::restart;
    std::string file;  // policy
};

struct ReplayLine {
    Wall at{};
    std::string at_text;  // as written, for the answer
    int at_column = 1;
    std::optional<ReplayEvent> event;
    // Of a request:
    std::string id_text = "null";  // as written
    ServiceRequest request;
};

struct LineError {
    int column = 1;
    std::string reason;
};

// nullopt and `error` set when the line is wrong.
[[nodiscard]] std::optional<ReplayLine> parse_replay_line(std::string_view text, LineError& error);

}  // namespace ration
