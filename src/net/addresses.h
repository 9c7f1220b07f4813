// Where a host is: its addresses, looked up at start and, for a name, every now and then.
//
// Thread rule: any member from any thread. A look-up that fails later keeps the addresses known so
// far. Errors: `open` says Unavailable when the name is not known, unless that may be so for now.
//
//   auto addresses = net::Addresses::open("redis.internal", 6379);
//   net::Endpoints endpoints = (*addresses)->get();
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

namespace ration::net {

using Endpoints = std::shared_ptr<const std::vector<Endpoint>>;

class Addresses {
public:
    enum class Unknown : std::uint8_t { is_error, is_none_yet };

    // Looks up once; this may wait for the name service.
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<Addresses>> open(
        std::string host, std::uint16_t port, Unknown unknown = Unknown::is_error);
    ~Addresses();

    [[nodiscard]] Endpoints get() const;
    // Nobody answers at these addresses: a name is looked up anew, at most twice a second.
    void doubt();

private:
    Addresses(std::string host, std::uint16_t port, Endpoints endpoints);
    void refresh();

    const std::string host_;
    const std::uint16_t port_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;
    bool doubted_ = false;
    Endpoints endpoints_;
    std::thread thread_;  // only for names
};

}  // namespace ration::net
