#include "net/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ration::net {

namespace {

IoResult system_result(ssize_t result, std::string& error) {
    if (result > 0) {
        return {Io::done, static_cast<std::size_t>(result)};
    }
    if (result == 0) {
        return {Io::closed, 0};
    }
    if (errno == EAGAIN) {
        return {Io::would_block, 0};
    }
    error = errno == ECONNRESET ? "connection reset" : "connection broke";
    return {Io::failed, 0};
}

template <typename Call>
ssize_t restarting(Call call) {
    ssize_t result = 0;
    do {
        result = call();
    } while (result < 0 && errno == EINTR);
    return result;
}

int clamped(std::size_t size) {
    return static_cast<int>(std::min<std::size_t>(size, INT_MAX));
}

}  // namespace

void FreeSsl::operator()(ssl_st* ssl) const {
    SSL_free(ssl);
}

Stream::Stream(Fd fd, SslPtr ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {
    if (ssl_ != nullptr) {
        SSL_set_fd(ssl_.get(), fd_.get());
    }
}

IoResult Stream::handshake() {
    if (ssl_ == nullptr) {
        return {};
    }
    ERR_clear_error();
    return ssl_result(SSL_do_handshake(ssl_.get()));
}

IoResult Stream::read(std::span<char> into) {
    if (ssl_ != nullptr) {
        ERR_clear_error();
        return ssl_result(SSL_read(ssl_.get(), into.data(), clamped(into.size())));
    }
    return system_result(restarting([&] { return ::recv(fd_.get(), into.data(), into.size(), 0); }),
                         error_);
}

IoResult Stream::write(std::string_view bytes) {
    if (ssl_ != nullptr) {
        ERR_clear_error();
        return ssl_result(SSL_write(ssl_.get(), bytes.data(), clamped(bytes.size())));
    }
    return system_result(
        restarting([&] { return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }),
        error_);
}

IoResult Stream::ssl_result(int result) {
    if (result > 0) {
        return {Io::done, static_cast<std::size_t>(result)};
    }
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE:
            return {Io::would_block, 0};
        case SSL_ERROR_ZERO_RETURN:
            return {Io::closed, 0};
        default:
            break;
    }
    const long verify = SSL_get_verify_result(ssl_.get());
    const unsigned long code = ERR_peek_error();
    if (verify != X509_V_OK) {
        error_ = std::string("certificate: ") + X509_verify_cert_error_string(verify);
    } else if (code != 0) {
        const char* reason = ERR_reason_error_string(code);
        error_ = std::string("TLS: ") + (reason != nullptr ? reason : "error");
    } else {
        error_ = "connection broke";
    }
    ERR_clear_error();
    return {Io::failed, 0};
}

void Stream::finish_writing() {
    if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get()) != 0) {
        ERR_clear_error();
        SSL_shutdown(ssl_.get());
        ERR_clear_error();
    }
    if (fd_.valid()) {
        ::shutdown(fd_.get(), SHUT_WR);
    }
}

void Stream::reset_connection() {
    if (fd_.valid()) {
        const linger reset{1, 0};
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    ssl_.reset();
    fd_.reset();
}

void Stream::close() {
    if (ssl_ != nullptr && fd_.valid() && SSL_is_init_finished(ssl_.get()) != 0) {
        ERR_clear_error();
        SSL_shutdown(ssl_.get());
        ERR_clear_error();
    }
    ssl_.reset();
    fd_.reset();
}

}  // namespace ration::net
