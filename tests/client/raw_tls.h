// TLS for the raw server: a certificate made for the test, and HTTP/2 offered by name.
#pragma once

#include <string>

namespace ration::client {

class RawTls {
public:
    // For 127.0.0.1 and localhost, or for another host.
    explicit RawTls(bool right_name = true);
    ~RawTls();
    RawTls(const RawTls&) = delete;
    RawTls& operator=(const RawTls&) = delete;

    [[nodiscard]] std::string certificate_file() const { return folder_ + "/crt"; }
    // The server's side of a connection; nullptr when the handshake failed.
    [[nodiscard]] void* accept(int fd) const;
    static void close(void* session);
    // As recv and send.
    static long read(void* session, char* into, std::size_t size);
    static long write(void* session, const char* from, std::size_t size);
    [[nodiscard]] static bool has_unread(void* session);

private:
    std::string folder_;
    void* context_ = nullptr;
};

}  // namespace ration::client
