#include "raw_tls.h"

#include <openssl/ssl.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "base/text.h"

namespace ration::client {
namespace {

// OpenSSL writes without MSG_NOSIGNAL; a peer that hung up must be an error here, not the end.
[[maybe_unused]] const auto sigpipe_before = std::signal(SIGPIPE, SIG_IGN);

int choose_http2(SSL*, const unsigned char** chosen, unsigned char* size,
                 const unsigned char* offered, unsigned int offered_size, void*) {
    static constexpr unsigned char http2[] = {2, 'h', '2'};
    const std::string_view list(reinterpret_cast<const char*>(offered), offered_size);
    if (list.find(std::string_view("\x02h2", 3)) == std::string_view::npos) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *chosen = http2 + 1;
    *size = 2;
    return SSL_TLSEXT_ERR_OK;
}

}  // namespace

RawTls::RawTls(bool right_name) {
    char folder[] = "/tmp/ration-client-XXXXXX";
    if (!mkdtemp(folder)) {
        throw std::runtime_error("no temporary folder");
    }
    folder_ = folder;
    const std::string command = cat(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=t "
        "-addext subjectAltName=",
        right_name ? "DNS:localhost,IP:127.0.0.1" : "DNS:other.test", " -keyout ", folder_,
        "/key -out ", folder_, "/crt 2>/dev/null");
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    if (std::system(command.c_str()) != 0 ||
        SSL_CTX_use_certificate_file(context, certificate_file().c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, cat(folder_, "/key").c_str(), SSL_FILETYPE_PEM) != 1) {
        throw std::runtime_error("no certificate");
    }
    SSL_CTX_set_alpn_select_cb(context, choose_http2, nullptr);
    context_ = context;
}

RawTls::~RawTls() {
    SSL_CTX_free(static_cast<SSL_CTX*>(context_));
    std::filesystem::remove_all(folder_);
}

void* RawTls::accept(int fd) const {
    SSL* session = SSL_new(static_cast<SSL_CTX*>(context_));
    SSL_set_fd(session, fd);
    if (SSL_accept(session) != 1) {
        SSL_free(session);
        return nullptr;
    }
    return session;
}

void RawTls::close(void* session) {
    SSL_shutdown(static_cast<SSL*>(session));
    SSL_free(static_cast<SSL*>(session));
}

long RawTls::read(void* session, char* into, std::size_t size) {
    return SSL_read(static_cast<SSL*>(session), into, static_cast<int>(size));
}

long RawTls::write(void* session, const char* from, std::size_t size) {
    return SSL_write(static_cast<SSL*>(session), from, static_cast<int>(size));
}

bool RawTls::has_unread(void* session) {
    return SSL_pending(static_cast<SSL*>(session)) > 0;
}

}  // namespace ration::client
