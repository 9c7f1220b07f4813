// A precise alarm on an event loop: the loop's own timers are too coarse for a deadline of a few
// milliseconds. It rings on real time; whoever hears it looks at the loop's reading.
//
// Thread rule: the loop's thread. Setting it to a later moment than it is set to costs nothing: it
// rings early and is set again.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "net/loop.h"

namespace ration {

class Alarm final : public net::Watch {
public:
    Alarm(net::Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
    ~Alarm() override { loop_.forget(*this); }
    [[nodiscard]] absl::Status open();

    // Rings at `at` or before it.
    void set(Mono at);
    void on_ready(std::uint32_t events) override;

private:
    net::Loop& loop_;
    std::function<void()> ring_;
    net::Fd fd_;
    Mono set_for_ = Mono::max();
};

}  // namespace ration
