#include "workbench/loopback_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/text.h"
#include "net/address.h"
#include "server/http/fields.h"

namespace ration {

void LoopbackClient::reconnect() {
    reader_.reset();
    fd_.reset();
}

absl::Status LoopbackClient::connect() {
    fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!fd_.valid() ||
        ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        return absl::UnavailableError(cat("cannot connect to the gateway: ", errno_text(errno)));
    }
    net::set_no_delay(fd_.get());
    set_wire_patience(fd_.get());
    reader_.emplace(fd_.get());
    return absl::OkStatus();
}

absl::StatusOr<WireMessage> LoopbackClient::ask(const ServiceRequest& request) {
    if (!fd_.valid()) {
        if (const absl::Status connected = connect(); !connected.ok()) {
            return connected;
        }
    }
    std::string bytes =
        cat(request.method, " ", request.target, " HTTP/1.1\r\nHost: ration.test\r\n");
    for (const auto& [name, value] : request.headers) {
        bytes += cat(name, ": ", value, "\r\n");
    }
    if (!request.body.empty()) {
        bytes += cat("Content-Length: ", request.body.size(), "\r\n");
    }
    bytes += cat("\r\n", request.body);
    if (const absl::Status sent = write_all(fd_.get(), bytes); !sent.ok()) {
        return sent;
    }
    auto answer = reader_->next(request.method == "HEAD");
    const std::string* connection = answer.ok() ? answer->find("Connection") : nullptr;
    if (!answer.ok() || (connection != nullptr && http::list_has(*connection, "close"))) {
        reconnect();
    }
    return answer;
}

}  // namespace ration
