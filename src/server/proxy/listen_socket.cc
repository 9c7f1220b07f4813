#include "server/proxy/listen_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "server/proxy/worker.h"

namespace ration {

namespace {

net::Fd spare_descriptor() {
    return net::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

ListenSocket::ListenSocket(Worker& worker, net::Fd fd, std::size_t listener)
    : worker_(worker), fd_(std::move(fd)), listener_(listener), spare_(spare_descriptor()) {}

void ListenSocket::on_ready(std::uint32_t) {
    for (int i = 0; i < max_accepts_per_event && accept_one(); ++i) {
    }
}

bool ListenSocket::accept_one() {
    net::Endpoint peer;
    peer.length = sizeof peer.storage;
    net::Fd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
        worker_.accepted(std::move(fd), peer, listener_);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE) {
        drop_one();
        return false;
    }
    return errno == ECONNABORTED || errno == EINTR;
}

void ListenSocket::drop_one() {
    spare_.reset();
    const net::Fd dropped(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    spare_ = spare_descriptor();
}

}  // namespace ration
