#include "server/admin/admin_server.h"

#include <sys/socket.h>

#include <thread>
#include <utility>

#include "net/address.h"
#include "server/admin/admin_connection.h"

namespace ration {

namespace {

class AdminServerImpl final : public AdminServer, private net::Watch {
public:
    AdminServerImpl(const AdminServerOptions& options, const Clock& clock, Handler handler)
        : loop_(clock),
          connections_{.loop = loop_, .options = options, .handler = std::move(handler)} {}

    ~AdminServerImpl() override {
        loop_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
        connections_.open.clear();
    }

    [[nodiscard]] absl::Status open() {
        auto listener = net::listen_on(connections_.options.address, connections_.options.port);
        if (!listener.ok()) {
            return listener.status();
        }
        listener_ = *std::move(listener);
        if (auto status = loop_.open(); !status.ok()) {
            return status;
        }
        if (auto status = loop_.add_listener(listener_.fd.get(), *this); !status.ok()) {
            return status;
        }
        thread_ = std::thread([this] { loop_.run(); });
        return absl::OkStatus();
    }

    [[nodiscard]] std::uint16_t port() const override { return listener_.port; }

private:
    void on_ready(std::uint32_t /*events*/) override {
        for (;;) {
            net::Fd fd(
                ::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!fd.valid()) {
                return;
            }
            if (connections_.open.size() >= connections_.options.max_connections) {
                continue;  // closes it
            }
            auto connection = std::make_unique<AdminConnection>(connections_, std::move(fd));
            AdminConnection* started = connection.get();
            connections_.open.emplace(started, std::move(connection));
            if (!started->start()) {
                connections_.close(*started);
            }
        }
    }

    net::Loop loop_;
    net::Listener listener_;
    AdminConnections connections_;
    std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::start(const AdminServerOptions& options,
                                                                const Clock& clock,
                                                                Handler handler) {
    auto server = std::make_unique<AdminServerImpl>(options, clock, std::move(handler));
    if (auto status = server->open(); !status.ok()) {
        return status;
    }
    return server;
}

}  // namespace ration
