// A service under test: something that judges requests at given instants. In process it is a
// VirtualService; over sockets it is the real gateway on a clock that is moved by hand.
//
// Instants are readings of the monotonic clock, never earlier than the call before. Thread rule:
// one thread at a time. Ownership: `rules` are shared.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "workbench/message.h"
#include "workbench/rules_loader.h"

namespace ration {

// The monotonic clock when a service starts: a machine that has been up for an hour.
inline constexpr Mono first_mono{std::chrono::hours(1)};

class TestBed {
public:
    // Told once per request, when its answer is there: `ticket` is the caller's number for it.
    using Sink = std::function<void(std::uint64_t ticket, ServiceAnswer answer)>;

    virtual ~TestBed() = default;

    // An error means that the request could not be put to the service at all.
    [[nodiscard]] virtual absl::Status request(Mono at, ServiceRequest request,
                                               std::uint64_t ticket) = 0;
    virtual void reload(Mono at, const Rules& rules) = 0;
    virtual void set_counters(Mono at, bool up) = 0;
    // Volatile state is lost and requests in flight die; the rules stay as they are.
    [[nodiscard]] virtual absl::Status restart(Mono at) = 0;
    // Steps the wall clock alone; as in service, its reading never goes back.
    virtual void step_wall(Mono at, Nanos by) = 0;
    // Completes everything that is pending.
    virtual void run_out() = 0;
};

}  // namespace ration
