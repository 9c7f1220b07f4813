#include "server/proxy/upstream_addresses.h"

#include <chrono>
#include <utility>

namespace ration {

namespace {
constexpr std::chrono::seconds refresh_every{30};
}  // namespace

absl::StatusOr<std::unique_ptr<UpstreamAddresses>> UpstreamAddresses::open(std::string host,
                                                                           std::uint16_t port) {
    absl::StatusOr<std::vector<net::Endpoint>> found = net::resolve(host, port);
    if (!found.ok()) {
        return found.status();
    }
    auto endpoints = std::make_shared<const std::vector<net::Endpoint>>(*std::move(found));
    return std::unique_ptr<UpstreamAddresses>(
        new UpstreamAddresses(std::move(host), port, std::move(endpoints)));
}

UpstreamAddresses::UpstreamAddresses(std::string host, std::uint16_t port, Endpoints endpoints)
    : host_(std::move(host)), port_(port), endpoints_(std::move(endpoints)) {
    if (!net::is_literal(host_)) {
        thread_ = std::thread([this] { refresh(); });
    }
}

UpstreamAddresses::~UpstreamAddresses() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    stop_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

Endpoints UpstreamAddresses::get() const {
    const std::lock_guard lock(mutex_);
    return endpoints_;
}

void UpstreamAddresses::refresh() {
    std::unique_lock lock(mutex_);
    while (!stop_.wait_for(lock, refresh_every, [this] { return stopping_; })) {
        lock.unlock();
        absl::StatusOr<std::vector<net::Endpoint>> found = net::resolve(host_, port_);
        lock.lock();
        if (found.ok() && !found->empty()) {
            endpoints_ = std::make_shared<const std::vector<net::Endpoint>>(*std::move(found));
        }
    }
}

}  // namespace ration
