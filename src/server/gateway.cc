#include "server/gateway.h"

#include <fcntl.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "net/signals.h"
#include "server/proxy/client_connection.h"
#include "server/proxy/listen_socket.h"
#include "server/proxy/transfer.h"
#include "server/proxy/worker.h"

namespace ration {

namespace {

// What is wrong with the listener's certificate and key goes into `reason`.
std::optional<net::TlsContext> read_certificate(const ListenerOptions& listener,
                                                std::string& reason) {
    auto made = net::TlsContext::server(listener.tls->certificate_file, listener.tls->key_file);
    if (!made.ok()) {
        reason = absl::StrCat("listener ", listener.address, ":", listener.port, ": ",
                              made.status().message());
        return std::nullopt;
    }
    return *std::move(made);
}

class GatewayImpl final : public Gateway {
public:
    GatewayImpl(const GatewayOptions& options, Engine& engine, const Clock& clock,
                RequestObserver& observer)
        : core_{.options = options,
                .engine = engine,
                .clock = clock,
                .observer = observer,
                .listener_tls = {},
                .upstream_tls = {},
                .addresses = {},
                .steps = {}} {}
    ~GatewayImpl() override { stop(); }

    absl::Status open();

    [[nodiscard]] std::uint16_t port(std::size_t index) const override {
        return index < ports_.size() ? ports_[index] : 0;
    }
    bool drain(Nanos patience) override;
    std::optional<ListenerFault> read_certificates() override;
    void use_certificates() override;
    [[nodiscard]] GatewayStats stats() const override;

private:
    absl::Status open_tls();
    absl::Status open_listener(std::size_t index);
    absl::Status start_threads();
    void stop();
    [[nodiscard]] bool all_drained() const;
    [[nodiscard]] absl::Status at(Position place, absl::StatusCode code,
                                  std::string_view reason) const;

    GatewayCore core_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
    std::vector<std::uint16_t> ports_;
    std::vector<std::string> unix_paths_;
    std::vector<std::optional<net::TlsContext>> read_tls_;  // by listener; not in use yet
    std::mutex mutex_;
    std::condition_variable drained_;
};

absl::Status GatewayImpl::open() {
    if (absl::Status status = open_tls(); !status.ok()) {
        return status;
    }
    auto addresses = net::Addresses::open(core_.options.upstream.host, core_.options.upstream.port);
    if (!addresses.ok()) {
        return at(core_.options.upstream.at, addresses.status().code(),
                  cat("upstream: ", std::string(addresses.status().message())));
    }
    core_.addresses = *std::move(addresses);
    if (core_.options.redis != nullptr) {
        core_.steps = std::make_unique<StepRunner>(core_.options.waiting_steps);
    }
    const unsigned wanted =
        core_.options.threads != 0 ? core_.options.threads : std::thread::hardware_concurrency();
    for (unsigned i = 0; i < std::max(1U, wanted); ++i) {
        workers_.push_back(std::make_unique<Worker>(core_, i, [this] {
            const std::lock_guard lock(mutex_);
            drained_.notify_all();
        }));
        if (absl::Status status = workers_.back()->open(); !status.ok()) {
            return status;
        }
    }
    for (std::size_t i = 0; i < core_.options.listeners.size(); ++i) {
        if (absl::Status status = open_listener(i); !status.ok()) {
            return status;
        }
    }
    return start_threads();
}

// The fault with the place in the file that it is about.
absl::Status GatewayImpl::at(Position place, absl::StatusCode code, std::string_view reason) const {
    return absl::Status(code, core_.options.file.empty()
                                  ? std::string(reason)
                                  : Problem{core_.options.file, place, std::string(reason)}.text());
}

absl::Status GatewayImpl::start_threads() {
    try {
        for (const auto& worker : workers_) {
            threads_.emplace_back([worker = worker.get()] {
                net::block_signals();
                worker->run();
            });
        }
    } catch (const std::system_error& error) {
        return absl::ResourceExhaustedError(absl::StrCat("cannot start threads: ", error.what()));
    }
    return absl::OkStatus();
}

absl::Status GatewayImpl::open_tls() {
    for (const ListenerOptions& listener : core_.options.listeners) {
        core_.listener_tls.emplace_back(nullptr);
        if (!listener.tls) {
            continue;
        }
        std::string reason;
        auto made = read_certificate(listener, reason);
        if (!made) {
            return at(listener.at, absl::StatusCode::kInvalidArgument, reason);
        }
        core_.listener_tls.back() = std::make_unique<ListenerTls>(*std::move(made));
    }
    const UpstreamOptions& upstream = core_.options.upstream;
    if (upstream.tls) {
        auto made = net::TlsContext::client(upstream.ca_file, upstream.verify);
        if (!made.ok()) {
            return at(upstream.at, made.status().code(),
                      cat("upstream: ", std::string(made.status().message())));
        }
        core_.upstream_tls = *std::move(made);
    }
    return absl::OkStatus();
}

// TCP: one socket for each worker on the same port, the kernel spreads connections. Unix: one
// socket, all workers accept from it.
absl::Status GatewayImpl::open_listener(std::size_t index) {
    const ListenerOptions& options = core_.options.listeners[index];
    std::uint16_t port = options.port;
    int shared = -1;
    for (const auto& worker : workers_) {
        net::Fd fd;
        if (shared >= 0) {
            fd.reset(::fcntl(shared, F_DUPFD_CLOEXEC, 0));
        } else {
            absl::StatusOr<net::Listener> listener = net::listen_on(options.address, port);
            if (!listener.ok()) {
                return at(options.at, listener.status().code(),
                          std::string(listener.status().message()));
            }
            fd = std::move(listener->fd);
            port = listener->port;
            if (!listener->unix_path.empty()) {
                unix_paths_.push_back(listener->unix_path);
                shared = fd.get();
            }
        }
        if (absl::Status status = worker->add_listener(std::move(fd), index); !status.ok()) {
            return status;
        }
    }
    ports_.push_back(port);
    return absl::OkStatus();
}

std::optional<ListenerFault> GatewayImpl::read_certificates() {
    read_tls_.clear();
    std::vector<std::optional<net::TlsContext>> read(core_.listener_tls.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
        if (core_.listener_tls[i] == nullptr) {
            continue;
        }
        ListenerFault fault{.listener = i, .reason = {}};
        read[i] = read_certificate(core_.options.listeners[i], fault.reason);
        if (!read[i]) {
            return fault;
        }
    }
    read_tls_ = std::move(read);
    return std::nullopt;
}

void GatewayImpl::use_certificates() {
    for (std::size_t i = 0; i < read_tls_.size(); ++i) {
        if (read_tls_[i]) {
            core_.listener_tls[i]->renew(*std::move(read_tls_[i]));
        }
    }
    read_tls_.clear();
}

bool GatewayImpl::all_drained() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const auto& worker) { return worker->drained(); });
}

bool GatewayImpl::drain(Nanos patience) {
    for (const auto& worker : workers_) {
        worker->start_drain();
    }
    bool drained = false;
    {
        std::unique_lock lock(mutex_);
        drained = drained_.wait_for(lock, patience, [this] { return all_drained(); });
    }
    stop();
    return drained;
}

void GatewayImpl::stop() {
    for (const auto& worker : workers_) {
        worker->stop();
    }
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
    if (core_.steps != nullptr) {
        core_.steps->stop();  // it may be at work on a request
    }
    for (const auto& worker : workers_) {
        worker->cut();
    }
    for (const std::string& path : unix_paths_) {
        ::unlink(path.c_str());
    }
    unix_paths_.clear();
}

GatewayStats GatewayImpl::stats() const {
    GatewayStats stats;
    for (const auto& worker : workers_) {
        worker->add_to(stats);
    }
    return stats;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::start(const GatewayOptions& options,
                                                        Engine& engine, const Clock& clock,
                                                        RequestObserver& observer) {
    auto gateway = std::make_unique<GatewayImpl>(options, engine, clock, observer);
    if (absl::Status status = gateway->open(); !status.ok()) {
        return status;
    }
    return std::unique_ptr<Gateway>(std::move(gateway));
}

}  // namespace ration
