// A listening socket of one worker: accepts until there is nothing to accept.
//
// When the process is out of descriptors, connections are taken with a spare one and closed, so the
// queue does not stand still. Thread rule: the worker's thread.
#pragma once

#include <cstddef>

#include "net/fd.h"
#include "net/loop.h"

namespace ration {

class Worker;

inline constexpr int max_accepts_per_event = 64;

class ListenSocket final : public net::Watch {
public:
    ListenSocket(Worker& worker, net::Fd fd, std::size_t listener);
    void on_ready(std::uint32_t events) override;
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    bool accept_one();
    void drop_one();

    Worker& worker_;
    net::Fd fd_;
    std::size_t listener_;
    net::Fd spare_;
};

}  // namespace ration
