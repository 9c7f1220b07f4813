// Requests and answers as the workbench handles them: plain values that own their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ration/limit.h"
#include "ration/time.h"
#include "request/address.h"

namespace ration {

using Fields = std::vector<std::pair<std::string, std::string>>;

// What the upstream will say to one request.
struct ScriptedAnswer {
    int status = 200;
    Fields headers;
    std::string body;
    std::optional<Nanos> takes = Nanos(0);  // until it answers; nullopt: never
    // What it says when it is asked about the request's idempotency key: one answer, or none for a
    // 404 at once.
    std::vector<ScriptedAnswer> probe;
};

struct ServiceRequest {
    std::string method = "GET";
    std::string target = "/";
    Fields headers;
    Peer peer;
    std::string body;
    ScriptedAnswer upstream;
};

enum class ServiceOutcome : std::uint8_t {
    admitted,  // reached the upstream, whatever it said
    refused,   // answered by ration
    replayed,  // answered from an earlier result of the same key
    lost,      // died in a restart
};

[[nodiscard]] const char* to_string(ServiceOutcome outcome);

// Where one limit of the request stood after its charge: for people.
struct LevelLine {
    std::string rule;
    std::string limit;  // "60/min"
    Level level;
};

// What the upstream was given, when it was asked.
struct ForwardedRequest {
    std::string method;
    std::string target;
    Fields headers;
};

struct ServiceAnswer {
    ServiceOutcome outcome = ServiceOutcome::refused;
    int status = 0;  // 0: none (lost)
    Fields headers;
    std::string body;
    std::optional<std::string> rule;  // the binding rule
    std::optional<Nanos> wait;        // exact, when a wait helps
    std::vector<LevelLine> levels;
    std::optional<ForwardedRequest> forwarded;
};

}  // namespace ration
