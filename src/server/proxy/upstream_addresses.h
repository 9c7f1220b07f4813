// Where the upstream is: its addresses, looked up at start and, for a name, every now and then.
//
// Thread rule: `get` from any thread. A look-up that fails later keeps the addresses known so far.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "net/address.h"

namespace ration {

using Endpoints = std::shared_ptr<const std::vector<net::Endpoint>>;

class UpstreamAddresses {
public:
    // Looks up once; Unavailable when the name is not known.
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<UpstreamAddresses>> open(
        std::string host, std::uint16_t port);
    ~UpstreamAddresses();

    [[nodiscard]] Endpoints get() const;

private:
    UpstreamAddresses(std::string host, std::uint16_t port, Endpoints endpoints);
    void refresh();

    const std::string host_;
    const std::uint16_t port_;
    mutable std::mutex mutex_;
    std::condition_variable stop_;
    bool stopping_ = false;
    Endpoints endpoints_;
    std::thread thread_;  // only for names
};

}  // namespace ration
