// TLS settings shared by many connections: version 1.2 at least, for HTTP with ALPN http/1.1.
//
// Thread rule: const after making, sessions may be made from any thread. Errors name the file or
// the setting OpenSSL refused.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "net/stream.h"

struct ssl_ctx_st;

namespace ration::net {

struct TlsClientOptions {
    std::string ca_file = {};           // empty: the system's roots
    bool verify = true;                 // off: any certificate goes
    std::string certificate_file = {};  // this side's own, PEM chain; empty: none
    std::string key_file = {};
    bool http = true;  // ALPN http/1.1
};

class TlsContext {
public:
    // For listeners: PEM chain and key.
    [[nodiscard]] static absl::StatusOr<TlsContext> server(const std::string& certificate_file,
                                                           const std::string& key_file);
    // For upstreams. Empty `ca_file`: the system's roots. `verify` off: any certificate goes.
    [[nodiscard]] static absl::StatusOr<TlsContext> client(const std::string& ca_file, bool verify);
    [[nodiscard]] static absl::StatusOr<TlsContext> client(const TlsClientOptions& options);

    [[nodiscard]] SslPtr accept_session() const;
    // Sends `host` as SNI (unless it is an address) and, when verifying, checks the certificate for
    // it.
    [[nodiscard]] SslPtr connect_session(const std::string& host) const;

private:
    struct FreeContext {
        void operator()(ssl_ctx_st* context) const;
    };
    std::unique_ptr<ssl_ctx_st, FreeContext> context_;
    bool verify_ = false;
};

}  // namespace ration::net
