// What is told about a finished request: to the metrics, the access log, a test.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/exchange.h"
#include "ration/time.h"

namespace ration {

enum class RequestOutcome : std::uint8_t {
    admitted,     // reached the upstream, whatever it said
    refused,      // answered by ration
    replayed,     // answered with what was kept of the first request with this key
    preflight,    // CORS pre-check
    malformed,    // 400 and close before the engine saw it (also 408, 413, 431)
    client_gone,  // the client left before its answer was complete
};

// Views are good during the call only.
struct RequestRecord {
    // nullptr when the engine never saw the request (malformed).
    const Exchange* exchange = nullptr;
    RequestOutcome outcome = RequestOutcome::admitted;
    std::string_view id;
    std::string_view method;
    std::string_view target;           // raw, as on the request line
    std::string_view detail;           // why, for malformed requests and upstream trouble
    int status = 0;                    // as sent to the client; 0: nothing was sent
    int upstream_status = 0;           // 0: no answer from it
    std::uint64_t request_bytes = 0;   // body
    std::uint64_t response_bytes = 0;  // body
    Wall at{};                         // arrival
    Nanos total{0};                    // arrival to last byte handed to the socket
    Nanos upstream{0};                 // until the upstream's head; 0: not asked
    bool tls = false;
};

// Thread rule: called from the gateway's I/O threads, several at once; must not block.
class RequestObserver {
public:
    virtual ~RequestObserver() = default;
    virtual void on_request(const RequestRecord& record) = 0;
};

}  // namespace ration
