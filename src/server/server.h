// The whole of `ration serve` in one object: gateway, admin listener, counters, logs, reload.
//
// `start` loads the rules, opens everything and serves; `drain` ends it gently; the destructor ends
// it at once. Thread rule: every member may be called from any thread. Ownership: clock, log,
// counters and ledger of the parts must outlive the server. Errors: problems of files as lines of
// `file:line:column: reason`, a listener that can't be opened with its address.
//
//   auto server = ration::Server::start(config, {.clock = clock, .log = *log,
//                                                  .environment = &environment});
//   if (!server.ok()) return server.status();
//   ...
//   (*server)->drain();
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ration/counters.h"
#include "ration/ledger.h"
#include "ration/time.h"
#include "server/config/serve_config.h"
#include "server/process/log.h"
#include "server/reload/reloader.h"

namespace ration {

struct ServerParts {
    const Clock& clock;
    Log& log;
    Policy::Environment environment;
    Counters* counters = nullptr;          // null: memory counters of its own
    Ledger* ledger = nullptr;              // null: the file that the settings name, if they do
    Nanos tick = std::chrono::seconds(1);  // between looks at files, counters and sweeps
    Nanos recheck = std::chrono::milliseconds(125);  // between questions to counters that are down
    std::string version = "unknown";                 // for /metrics
};

class Server {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<Server>> start(const ServeConfig& config,
                                                                       const ServerParts& parts);
    virtual ~Server() = default;

    [[nodiscard]] virtual std::uint16_t gateway_port(std::size_t listener) const = 0;
    [[nodiscard]] virtual std::uint16_t admin_port() const = 0;  // 0: there is none

    virtual ReloadResult reload(ReloadCause cause) = 0;
    virtual void reopen_logs() = 0;

    // Finishes what runs, for at most the configured time; the admin listener says "draining"
    // meanwhile. True when nothing had to be cut. Afterwards only destruction is left.
    virtual bool drain() = 0;
};

}  // namespace ration
