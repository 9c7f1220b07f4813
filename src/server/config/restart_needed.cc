#include <string_view>
#include <vector>

#include "base/text.h"
#include "server/config/serve_config.h"

namespace ration {

namespace {

bool same(const ListenerOptions& a, const ListenerOptions& b) {
    return a.address == b.address && a.port == b.port && a.tls.has_value() == b.tls.has_value() &&
           (!a.tls.has_value() || (a.tls->certificate_file == b.tls->certificate_file &&
                                   a.tls->key_file == b.tls->key_file));
}

bool same(const std::vector<ListenerOptions>& a, const std::vector<ListenerOptions>& b) {
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!same(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

bool same(const UpstreamOptions& a, const UpstreamOptions& b) {
    return a.host == b.host && a.port == b.port && a.tls == b.tls && a.ca_file == b.ca_file &&
           a.verify == b.verify && a.host_header == b.host_header &&
           a.max_connections == b.max_connections && a.max_idle == b.max_idle &&
           a.max_waiting == b.max_waiting && a.connect_timeout == b.connect_timeout &&
           a.answer_timeout == b.answer_timeout && a.idle_timeout == b.idle_timeout;
}

bool same_limits(const GatewayOptions& a, const GatewayOptions& b) {
    return a.max_header_bytes == b.max_header_bytes && a.max_headers == b.max_headers &&
           a.max_body_bytes == b.max_body_bytes && a.max_connections == b.max_connections &&
           a.stream_buffer_bytes == b.stream_buffer_bytes;
}

bool same_timeouts(const GatewayOptions& a, const GatewayOptions& b) {
    return a.header_timeout == b.header_timeout && a.body_timeout == b.body_timeout &&
           a.idle_timeout == b.idle_timeout && a.write_timeout == b.write_timeout;
}

bool same(const RedisTlsOptions& a, const RedisTlsOptions& b) {
    return a.enabled == b.enabled && a.ca_file == b.ca_file && a.verify == b.verify &&
           a.certificate_file == b.certificate_file && a.key_file == b.key_file;
}

bool same(const RedisOptions& a, const RedisOptions& b) {
    return a.host == b.host && a.port == b.port && same(a.tls, b.tls) && a.user == b.user &&
           a.password == b.password && a.database == b.database && a.prefix == b.prefix &&
           a.deadline == b.deadline && a.connect_timeout == b.connect_timeout &&
           a.lease == b.lease && a.max_waiting == b.max_waiting;
}

bool same_counters(const ServeConfig& a, const ServeConfig& b) {
    return a.counters_bytes == b.counters_bytes && a.replicas == b.replicas &&
           a.redis.has_value() == b.redis.has_value() && (!a.redis || same(*a.redis, *b.redis));
}

bool same_place(const AdminConfig& a, const AdminConfig& b) {
    return a.enabled == b.enabled && a.address == b.address && a.port == b.port;
}

}  // namespace

std::string restart_needed(const ServeConfig& running, const ServeConfig& wanted) {
    const GatewayOptions& a = running.gateway;
    const GatewayOptions& b = wanted.gateway;
    std::string changed;
    const auto note = [&](bool same_value, std::string_view word) {
        if (!same_value) {
            changed += cat(changed.empty() ? "" : ", ", word);
        }
    };
    note(same(a.listeners, b.listeners), "listeners");
    note(same(a.upstream, b.upstream), "upstream");
    note(same_place(running.admin, wanted.admin), "admin");
    note(same_counters(running, wanted), "counters");
    note(running.ledger == wanted.ledger, "ledger");
    note(a.threads == b.threads, "threads");
    note(same_limits(a, b), "limits");
    note(same_timeouts(a, b), "timeouts");
    note(a.server_name == b.server_name, "server_name");
    return changed;
}

}  // namespace ration
