// An upstream on a loopback port that answers what it is told to: the far side of a gateway under
// test.
//
// It runs on threads of its own, one per connection that the gateway opens. Thread rule: `script`
// and `take_seen` from the test's thread. Ownership: stops and joins when destroyed. Errors:
// `start` says what the system refused.
//
//   auto upstream = ScriptedUpstream::start();
//   (*upstream)->script({.status = 201});
//   ... a request through the gateway ...
//   (*upstream)->take_seen()->target
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "net/fd.h"
#include "workbench/message.h"

namespace ration {

class ScriptedUpstream {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<ScriptedUpstream>> start();
    ~ScriptedUpstream();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    // What is answered from now on.
    void script(ScriptedAnswer answer);
    // The request that came since the last call; nullopt when none did.
    [[nodiscard]] std::optional<ForwardedRequest> take_seen();

private:
    ScriptedUpstream() = default;
    void accept_all();
    void serve(int fd);

    net::Fd listener_;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    ScriptedAnswer answer_;
    std::optional<ForwardedRequest> seen_;
    bool stopping_ = false;
    std::vector<net::Fd> connections_;
    std::vector<std::thread> serving_;
    std::thread accepting_;
};

}  // namespace ration
