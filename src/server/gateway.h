// The gateway: a reverse proxy that asks the engine about every request.
//
// `start` opens the listeners (one I/O thread per `threads`, each with its own event loop,
// SO_REUSEPORT) and serves until `drain` or destruction. Thread rule: every member may be called
// from any thread. Ownership: engine, clock and observer must outlive the gateway. Errors: a port
// in use, a bad certificate and the like come back from `start` with the listener named.
//
//   auto gateway = ration::Gateway::start(options, engine, clock, observer);
//   if (!gateway.ok()) return gateway.status();
//   ...
//   (*gateway)->drain(std::chrono::seconds(30));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "policy/problems.h"
#include "ration/ledger.h"
#include "ration/time.h"
#include "server/request_record.h"

namespace ration {

class LedgerRunner;
class RedisStore;

struct TlsServerOptions {
    std::string certificate_file;  // PEM chain
    std::string key_file;          // PEM
};

struct ListenerOptions {
    std::string address = "127.0.0.1";  // or "unix:/path"
    std::uint16_t port = 0;             // 0: chosen by the system
    std::optional<TlsServerOptions> tls = {};
    Position at = {};  // in the file of the options
};

struct UpstreamOptions {
    std::string host = "127.0.0.1";  // address, name or "unix:/path"
    std::uint16_t port = 0;
    bool tls = false;
    std::string ca_file;                // TLS: empty: the system's roots
    bool verify = true;                 // TLS: chain and host name
    std::string host_header;            // empty: the client's Host goes through
    std::size_t max_connections = 256;  // per I/O thread
    std::size_t max_idle = 64;          // kept open per I/O thread
    std::size_t max_waiting = 1024;     // requests in line for a connection, per I/O thread
    Nanos connect_timeout = std::chrono::seconds(5);
    Nanos answer_timeout = std::chrono::seconds(60);  // until the head; then between two reads
    Nanos idle_timeout = std::chrono::seconds(50);
    Position at;
};

struct GatewayOptions {
    std::string file;  // where they are written, for messages; empty: nowhere
    std::vector<ListenerOptions> listeners;
    UpstreamOptions upstream;
    unsigned threads = 0;  // 0: one per core
    std::size_t max_header_bytes = 32 * 1024;
    std::size_t max_headers = 100;
    std::uint64_t max_body_bytes = 64ULL << 20;
    std::size_t max_connections = 10'000;             // per I/O thread
    std::size_t stream_buffer_bytes = 64 * 1024;      // each way, per request
    Nanos header_timeout = std::chrono::seconds(15);  // from the first byte to the end of the head
    Nanos body_timeout = std::chrono::seconds(30);    // between two reads of a body
    Nanos idle_timeout = std::chrono::seconds(75);    // between two requests
    Nanos write_timeout = std::chrono::seconds(30);   // a client that does not read
    // Keeps ceilings, quotas and idempotency; null: none (a policy that needs it is answered 503).
    LedgerRunner* ledger = nullptr;
    Nanos ledger_timeout = std::chrono::seconds(2);  // a slower reservation is a failed one
    Nanos hold = default_hold;                       // how long a contended write waits for a place
    // Where the counters are when they are not the engine's own, which then must be on the same
    // store; each I/O thread has a connection. Null: the engine's answer at once.
    std::shared_ptr<RedisStore> redis;
    // Attempts in line to be counted there before they are answered; those beyond it are counted
    // without waiting for it.
    std::size_t waiting_steps = 4096;
    std::string server_name = "ration";  // Server header of own answers; empty: none
    std::uint64_t request_id_seed = 0;   // 0: from the system; else repeatable ids
};

// Numbers that only the gateway knows.
struct GatewayStats {
    std::uint64_t client_connections = 0;    // open now
    std::uint64_t upstream_connections = 0;  // open now
    std::uint64_t upstream_idle = 0;         // of these, pooled
    std::uint64_t accepted = 0;              // since start
    std::uint64_t refused_connections = 0;   // over max_connections
};

struct ListenerFault {
    std::size_t listener = 0;  // its index
    std::string reason;
};

class Gateway {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<Gateway>> start(
        const GatewayOptions& options, Engine& engine, const Clock& clock,
        RequestObserver& observer);
    virtual ~Gateway() = default;  // stops at once

    // The port that listener `index` really has; 0 for a Unix socket.
    [[nodiscard]] virtual std::uint16_t port(std::size_t index) const = 0;

    // Stops accepting, answers what runs (with `Connection: close`), closes idle connections, and
    // returns when all are closed or `patience` is over; true when nothing had to be cut.
    virtual bool drain(Nanos patience) = 0;

    // Reads the files of every listener's certificate and key as they are now; nothing changes.
    // The first fault, if there is one. One caller at a time, also with the next.
    [[nodiscard]] virtual std::optional<ListenerFault> read_certificates() = 0;
    // New connections get what was read, if it was without fault; open ones keep theirs.
    virtual void use_certificates() = 0;

    [[nodiscard]] virtual GatewayStats stats() const = 0;
};

}  // namespace ration
