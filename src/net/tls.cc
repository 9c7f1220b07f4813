#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "net/address.h"

namespace ration::net {

namespace {

constexpr unsigned char alpn_http11[] = "\x08http/1.1";
constexpr unsigned int alpn_length = sizeof alpn_http11 - 1;

absl::Status failure(const std::string& what) {
    const unsigned long code = ERR_get_error();
    const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("TLS: ", what, ": ", reason != nullptr ? reason : "refused"));
}

// Clients that offer protocols must offer http/1.1; those that offer none get it.
int select_alpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
                unsigned int in_length, void*) {
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_length, alpn_http11, alpn_length, in, in_length) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

// Nobody is there to type one: a key that needs it is an error, and no reload waits at a terminal.
int no_pass_phrase(char*, int, int, void*) {
    return 0;
}

void set_common(SSL_CTX* context) {
    SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
}

absl::Status use_certificate(SSL_CTX* context, const std::string& certificate_file,
                             const std::string& key_file) {
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
        return failure(
            absl::StrCat("\"", certificate_file, "\" has no chain of certificates in PEM"));
    }
    if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
        return failure(
            absl::StrCat("\"", key_file, "\" has no key in PEM that needs no pass phrase"));
    }
    if (SSL_CTX_check_private_key(context) != 1) {
        return failure(absl::StrCat("key \"", key_file, "\" does not fit the certificate"));
    }
    return absl::OkStatus();
}

}  // namespace

void TlsContext::FreeContext::operator()(ssl_ctx_st* context) const {
    SSL_CTX_free(context);
}

absl::StatusOr<TlsContext> TlsContext::server(const std::string& certificate_file,
                                              const std::string& key_file) {
    TlsContext made;
    made.context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX* context = made.context_.get();
    if (context == nullptr) {
        return failure("context");
    }
    set_common(context);
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (auto status = use_certificate(context, certificate_file, key_file); !status.ok()) {
        return status;
    }
    SSL_CTX_set_alpn_select_cb(context, select_alpn, nullptr);
    return made;
}

absl::StatusOr<TlsContext> TlsContext::client(const std::string& ca_file, bool verify) {
    const TlsClientOptions options{.ca_file = ca_file, .verify = verify};
    return client(options);
}

absl::StatusOr<TlsContext> TlsContext::client(const TlsClientOptions& options) {
    TlsContext made;
    made.verify_ = options.verify;
    made.context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX* context = made.context_.get();
    if (context == nullptr) {
        return failure("context");
    }
    set_common(context);
    if (options.http) {
        SSL_CTX_set_alpn_protos(context, alpn_http11, alpn_length);
    }
    if (!options.certificate_file.empty()) {
        if (auto status = use_certificate(context, options.certificate_file, options.key_file);
            !status.ok()) {
            return status;
        }
    }
    SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    const int loaded = !options.verify           ? 1
                       : options.ca_file.empty() ? SSL_CTX_set_default_verify_paths(context)
                                                 : SSL_CTX_load_verify_locations(
                                                       context, options.ca_file.c_str(), nullptr);
    if (loaded != 1) {
        return failure(absl::StrCat("certificate authorities \"", options.ca_file, "\""));
    }
    return made;
}

SslPtr TlsContext::accept_session() const {
    SslPtr ssl(SSL_new(context_.get()));
    if (ssl != nullptr) {
        SSL_set_accept_state(ssl.get());
    }
    return ssl;
}

SslPtr TlsContext::connect_session(const std::string& host) const {
    SslPtr ssl(SSL_new(context_.get()));
    if (ssl == nullptr) {
        return ssl;
    }
    SSL_set_connect_state(ssl.get());
    const bool literal = is_literal(host);
    if (!literal) {
        SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 const_cast<char*>(host.c_str()));
    }
    if (verify_) {
        X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl.get());
        X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        const int set = literal
                            ? X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str())
                            : X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size());
        if (set != 1) {
            return nullptr;  // a name that no certificate can be checked for
        }
    }
    return ssl;
}

}  // namespace ration::net
