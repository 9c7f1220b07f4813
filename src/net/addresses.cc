#include "net/addresses.h"

#include <chrono>
#include <utility>

namespace ration::net {

namespace {
constexpr std::chrono::seconds refresh_every{30};
constexpr std::chrono::milliseconds least_pause{500};
}  // namespace

absl::StatusOr<std::unique_ptr<Addresses>> Addresses::open(std::string host, std::uint16_t port,
                                                           Unknown unknown) {
    absl::StatusOr<std::vector<Endpoint>> found = resolve(host, port);
    if (!found.ok()) {
        if (unknown == Unknown::is_error || is_literal(host)) {
            return found.status();
        }
        found.emplace();
    }
    auto endpoints = std::make_shared<const std::vector<Endpoint>>(*std::move(found));
    return std::unique_ptr<Addresses>(new Addresses(std::move(host), port, std::move(endpoints)));
}

Addresses::Addresses(std::string host, std::uint16_t port, Endpoints endpoints)
    : host_(std::move(host)), port_(port), endpoints_(std::move(endpoints)) {
    if (!is_literal(host_)) {
        thread_ = std::thread([this] { refresh(); });
    }
}

Addresses::~Addresses() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

Endpoints Addresses::get() const {
    const std::lock_guard lock(mutex_);
    return endpoints_;
}

void Addresses::doubt() {
    {
        const std::lock_guard lock(mutex_);
        doubted_ = true;
    }
    wake_.notify_all();
}

void Addresses::refresh() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait_for(lock, least_pause, [this] { return stopping_; });
        wake_.wait_for(lock, refresh_every, [this] { return stopping_ || doubted_; });
        if (stopping_) {
            return;
        }
        doubted_ = false;
        lock.unlock();
        absl::StatusOr<std::vector<Endpoint>> found = resolve(host_, port_);
        lock.lock();
        if (found.ok() && !found->empty()) {
            endpoints_ = std::make_shared<const std::vector<Endpoint>>(*std::move(found));
        }
    }
}

}  // namespace ration::net
