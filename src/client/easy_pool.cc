#include "client/easy_pool.h"

#include "client/policy.h"

namespace ration::client {
namespace {

void start_curl_once() {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    static_cast<void>(started);
}

void set_transport(CURL* handle, const ClientOptions& options) {
    const bool http1 = options.http_version == HttpVersion::http1;
    const long version = http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS;
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, version);
    const auto connect = std::chrono::ceil<std::chrono::milliseconds>(std::clamp<Nanos>(
        options.connect_timeout, std::chrono::milliseconds(1), std::chrono::hours(24)));
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, connect.count());
    if (options.proxy) {
        curl_easy_setopt(handle, CURLOPT_PROXY, options.proxy->c_str());
    }
    if (!options.ca_file.empty()) {
        curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca_file.c_str());
    }
}

}  // namespace

EasyPool::EasyPool(const ClientOptions& options) : options_(options) {
    start_curl_once();
}

EasyPool::~EasyPool() {
    for (CURL* handle : free_) {
        curl_easy_cleanup(handle);
    }
}

CURL* EasyPool::take() {
    if (!free_.empty()) {
        CURL* handle = free_.back();
        free_.pop_back();
        return handle;
    }
    CURL* handle = curl_easy_init();
    if (!handle) {
        return nullptr;
    }
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_USERAGENT, options_.user_agent.c_str());
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    // Ending a call must not wait for a name that is still being looked up.
    curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
    set_transport(handle, options_);
    return handle;
}

void EasyPool::put_back(CURL* handle) {
    if (!handle) {
        return;
    }
    if (free_.size() < most_kept) {
        free_.push_back(handle);
    } else {
        curl_easy_cleanup(handle);
    }
}

AttemptError error_of(CURLcode code, bool sent) {
    // What was sent before is in doubt, also where the connection could not be made that was to
    // follow a kept one that turned out dead.
    switch (static_cast<int>(code)) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
            return sent ? AttemptError::connection_lost : AttemptError::dns_failed;
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:  // the handshake broke off
        case CURLE_PROXY:
            return sent ? AttemptError::connection_lost : AttemptError::connect_failed;
        case CURLE_OPERATION_TIMEDOUT:
            return sent ? AttemptError::attempt_timeout : AttemptError::connect_failed;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_INVALIDCERTSTATUS:
        case CURLE_SSL_CRL_BADFILE:
            return AttemptError::tls_certificate;
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
        case CURLE_PARTIAL_FILE:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
        case CURLE_SEND_FAIL_REWIND:
        case CURLE_ABORTED_BY_CALLBACK:
            return sent ? AttemptError::connection_lost : AttemptError::connect_failed;
        default:
            return sent ? AttemptError::protocol_error : AttemptError::bad_request;
    }
}

}  // namespace ration::client
