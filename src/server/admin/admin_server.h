// The admin listener: a small HTTP/1.1 server on an event loop of its own thread.
//
// Thread rule: `handler` is called from that thread only, one request at a time; a slow answer (a
// reload of large files) holds up the others. Ownership: clock and handler's captures must outlive
// the server; the destructor closes everything at once. Errors: a port in use and the like come
// back from `start`. Bounds: see the options; a client that sends garbage gets 400 and is closed.
//
//   auto server = AdminServer::start({.address = "127.0.0.1", .port = 8081}, clock, handler);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ration/time.h"
#include "server/admin/admin_api.h"

namespace ration {

struct AdminServerOptions {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  // 0: chosen by the system
    std::size_t max_connections = 64;
    std::size_t max_header_bytes = 8 * 1024;
    std::size_t max_body_bytes = 1024 * 1024;
    Nanos request_timeout = std::chrono::seconds(10);  // a whole request; then its whole answer
    Nanos idle_timeout = std::chrono::seconds(60);
};

class AdminServer {
public:
    using Handler = std::function<AdminResponse(const AdminRequest&)>;

    [[nodiscard]] static absl::StatusOr<std::unique_ptr<AdminServer>> start(
        const AdminServerOptions& options, const Clock& clock, Handler handler);
    virtual ~AdminServer() = default;
    [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace ration
