// serve.yaml, section by section. Each section reads into the options it is about; what is absent
// keeps the default written there, so the defaults have one home and an empty section is legal.
#include "server/config/serve_config.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "net/address.h"
#include "ration/counters.h"
#include "server/config/address_text.h"
#include "server/config/config_reader.h"
#include "server/config/redis_config.h"

namespace ration {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::uint64_t kib = 1ULL << 10;
constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;
constexpr Bounds<Nanos> wait_bounds{milliseconds(10), hours(1)};
constexpr std::size_t max_server_name = 64;
constexpr std::uint64_t max_replicas = 10'000;

bool is_visible_ascii(std::string_view text) {
    for (const char c : text) {
        if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
            return false;
        }
    }
    return true;
}

// A path that has to name a readable file.
// ---- listeners ----

void listener_address(ConfigReader& reader, const YamlNode& node, std::string_view text,
                      ListenerOptions& listener) {
    if (text.starts_with("unix:")) {
        listener.address = cat("unix:", reader.file().path(text.substr(5)));
        return;
    }
    const auto endpoint = parse_endpoint(text);
    if (!endpoint.ok()) {
        reader.error(node, std::string(endpoint.status().message()));
        return;
    }
    if (!IpAddress::parse(endpoint->host).has_value()) {
        reader.error(node, cat("listen on an address, not on the name '", endpoint->host, "'"));
        return;
    }
    listener.address = endpoint->host;
    listener.port = endpoint->port;
}

void read_listener(ConfigReader& outer, const YamlNode& node, ListenerOptions& listener) {
    listener.at = node.at;
    if (node.is_scalar()) {
        listener_address(outer, node, node.scalar, listener);
        return;
    }
    ConfigReader reader(outer.file(), node, "a listener");
    std::string text;
    if (const YamlNode* address = reader.text("address", text)) {
        listener_address(reader, *address, text, listener);
    } else if (node.is_mapping() && node.find("address") == nullptr) {
        reader.error(node, "a listener needs an 'address' (HOST:PORT)");
    }
    if (const YamlNode* tls = reader.find("tls")) {
        ConfigReader files(outer.file(), *tls, "tls");
        listener.tls.emplace();
        files.readable("certificate", listener.tls->certificate_file);
        files.readable("key", listener.tls->key_file);
        if (tls->is_mapping() &&
            (tls->find("certificate") == nullptr || tls->find("key") == nullptr)) {
            reader.error(*tls, "tls needs 'certificate' and 'key'");
        }
        files.finish();
    }
    reader.finish();
}

void read_listeners(ConfigReader& top, ServeConfig& config) {
    const YamlNode* node = top.find("listeners");
    if (node == nullptr) {
        config.gateway.listeners.push_back({.address = "127.0.0.1", .port = 8080, .tls = {}});
        return;
    }
    const auto items = Reader::items(*node);
    if (items.empty() || items.size() > max_listeners) {
        top.error(*node, cat("listeners are 1 to ", max_listeners, ", not ", items.size()));
        return;
    }
    for (const YamlNode* item : items) {
        read_listener(top, *item, config.gateway.listeners.emplace_back());
    }
}

// ---- upstream ----

void upstream_url(ConfigReader& reader, const YamlNode& node, std::string_view text,
                  UpstreamOptions& upstream) {
    const auto url = parse_upstream_url(text);
    if (!url.ok()) {
        reader.error(node, std::string(url.status().message()));
        return;
    }
    upstream.host = url->endpoint.host;
    upstream.port = url->endpoint.port;
    upstream.tls = url->tls;
}

void upstream_settings(ConfigReader& reader, UpstreamOptions& upstream) {
    reader.readable("ca", upstream.ca_file);
    reader.flag("verify", upstream.verify);
    for (const char* key : {"ca", "verify"}) {
        const YamlNode* node = reader.node().find(key);
        if (node != nullptr && !upstream.tls && upstream.port != 0) {
            reader.error(*node, cat(key, " is for https, and the url is http"));
        }
    }
    if (const YamlNode* node = reader.text("host", upstream.host_header)) {
        if (!is_visible_ascii(upstream.host_header)) {
            reader.error(*node, "host is what the upstream sees as Host: visible ASCII only");
        }
    }
    reader.number("connections", upstream.max_connections, {1, 65'536});
    reader.number("idle_connections", upstream.max_idle, {0, 65'536});
    reader.number("waiting", upstream.max_waiting, {0, 1'000'000});
    if (const YamlNode* node = reader.find("timeouts")) {
        ConfigReader timeouts(reader.file(), *node, "timeouts");
        timeouts.duration("connect", upstream.connect_timeout, wait_bounds);
        timeouts.duration("answer", upstream.answer_timeout, wait_bounds);
        timeouts.duration("idle", upstream.idle_timeout, wait_bounds);
        timeouts.finish();
    }
}

void read_upstream(ConfigReader& top, ServeConfig& config) {
    const YamlNode* node = top.find("upstream");
    UpstreamOptions& upstream = config.gateway.upstream;
    if (node == nullptr) {
        top.error(top.node(), "an 'upstream' is needed (http://HOST:PORT)");
        return;
    }
    upstream.at = node->at;
    if (node->is_scalar()) {
        upstream_url(top, *node, node->scalar, upstream);
        return;
    }
    ConfigReader reader(top.file(), *node, "upstream");
    std::string text;
    if (const YamlNode* url = reader.text("url", text)) {
        upstream_url(reader, *url, text, upstream);
    } else if (node->is_mapping() && node->find("url") == nullptr) {
        reader.error(*node, "upstream needs a 'url' (http://HOST:PORT)");
    }
    upstream_settings(reader, upstream);
    reader.finish();
}

// ---- admin ----

void read_token(ConfigReader& reader, Policy::Environment environment, AdminConfig& admin) {
    ConfigReader::Secret token;
    const YamlNode* node = reader.secret({"token", "token_file", "a token"}, environment, token);
    admin.token_file = std::move(token.file);
    if (node == nullptr) {
        return;
    }
    admin.token = std::move(token.value);
    if (admin.token.size() < min_token_bytes || admin.token.size() > max_token_bytes ||
        !is_visible_ascii(admin.token)) {
        reader.error(*node, cat("a token is ", min_token_bytes, " to ", max_token_bytes,
                                " visible ASCII characters; this one is not"));
    }
}

void admin_address(ConfigReader& reader, const YamlNode& node, std::string_view text,
                   AdminConfig& admin) {
    ListenerOptions listener;
    if (text == "off") {
        admin.enabled = false;
        return;
    }
    if (text.starts_with("unix:")) {
        reader.error(node, "the admin listener has an address and a port");
        return;
    }
    listener_address(reader, node, text, listener);
    admin.address = listener.address;
    admin.port = listener.port;
}

void read_admin(ConfigReader& top, Policy::Environment environment, ServeConfig& config) {
    const YamlNode* node = top.find("admin");
    AdminConfig& admin = config.admin;
    if (node == nullptr) {
        return;
    }
    config.places.admin = node->at;
    if (node->is_scalar()) {
        admin_address(top, *node, node->scalar, admin);
    } else {
        ConfigReader reader(top.file(), *node, "admin");
        std::string text;
        if (const YamlNode* listen = reader.text("listen", text)) {
            admin_address(reader, *listen, text, admin);
        }
        read_token(reader, environment, admin);
        reader.finish();
    }
    const bool has_token = node->find("token") != nullptr || node->find("token_file") != nullptr;
    if (admin.enabled && !is_loopback(admin.address) && !has_token) {
        top.error(*node, cat("the admin listener on ", admin.address,
                             " can be reached by others: it needs a 'token' or a "
                             "'token_file'"));
    }
}

// ---- one port, one listener ----

// Threads share a port, so the system would let a second listener in on it, too, and deal
// connections out between the two: callers to the admin API, TLS to plain HTTP.
bool share_connections(const ListenerOptions& a, const ListenerOptions& b) {
    const auto of_a = IpAddress::parse(a.address);
    const auto of_b = IpAddress::parse(b.address);
    if (!of_a || !of_b) {
        return a.address == b.address;  // the path of a Unix socket
    }
    constexpr decltype(IpAddress::bytes) every{};  // 0.0.0.0 and ::
    return a.port == b.port && a.port != 0 && of_a->v4 == of_b->v4 &&
           (of_a == of_b || of_a->bytes == every || of_b->bytes == every);
}

std::string listener_text(const ListenerOptions& listener) {
    return net::is_unix_address(listener.address) ? listener.address
                                                  : endpoint_text(listener.address, listener.port);
}

void check_listeners(ConfigFile& file, const ServeConfig& config) {
    const std::vector<ListenerOptions>& listeners = config.gateway.listeners;
    const ListenerOptions admin{.address = config.admin.address, .port = config.admin.port};
    for (std::size_t i = 0; i < listeners.size(); ++i) {
        const ListenerOptions& one = listeners[i];
        for (std::size_t j = 0; j < i; ++j) {
            if (share_connections(one, listeners[j])) {
                file.reader.error(
                    one.at, cat(listener_text(one), " and the listener ",
                                listener_text(listeners[j]), " would share their connections"));
                return;
            }
        }
        if (config.admin.enabled && share_connections(one, admin)) {
            file.reader.error(config.places.admin.line != 0 ? config.places.admin : one.at,
                              cat("the admin listener ", listener_text(admin), " and the listener ",
                                  listener_text(one), " would share their connections"));
            return;
        }
    }
}

// ---- the rest ----

void read_counters(ConfigReader& top, Policy::Environment environment, ServeConfig& config) {
    const YamlNode* node = top.find("counters");
    if (node == nullptr) {
        return;
    }
    ConfigReader counters(top.file(), *node, "counters");
    counters.size("memory", config.counters_bytes, {min_counter_bytes, max_counter_bytes});
    if (const YamlNode* redis = counters.find("redis")) {
        config.places.redis = redis->at;
        read_redis(counters, *redis, environment, config.redis.emplace());
    }
    counters.number("replicas", config.replicas, {1, max_replicas});
    if (const YamlNode* replicas = node->find("replicas"); replicas != nullptr && !config.redis) {
        counters.error(*replicas,
                       "replicas are of gateways that share counters, and there is no "
                       "'redis' to share");
    }
    counters.finish();
}

void read_bounds(ConfigReader& top, ServeConfig& config) {
    GatewayOptions& gateway = config.gateway;
    if (const YamlNode* node = top.find("limits")) {
        ConfigReader limits(top.file(), *node, "limits");
        limits.size("header", gateway.max_header_bytes, {1 * kib, 1 * mib});
        limits.number("headers", gateway.max_headers, {8, 1000});
        limits.size("body", gateway.max_body_bytes, {0, 1024 * gib});
        limits.size("buffer", gateway.stream_buffer_bytes, {4 * kib, 16 * mib});
        limits.number("connections", gateway.max_connections, {1, 1'000'000});
        limits.finish();
    }
    if (const YamlNode* node = top.find("timeouts")) {
        ConfigReader timeouts(top.file(), *node, "timeouts");
        timeouts.duration("header", gateway.header_timeout, wait_bounds);
        timeouts.duration("body", gateway.body_timeout, wait_bounds);
        timeouts.duration("idle", gateway.idle_timeout, wait_bounds);
        timeouts.duration("write", gateway.write_timeout, wait_bounds);
        timeouts.finish();
    }
}

void read_access_log(ConfigReader& top, ServeConfig& config) {
    std::string text;
    const YamlNode* node = top.text("access_log", text);
    if (node == nullptr) {
        return;
    }
    config.places.access_log = node->at;
    if (text == "stdout") {
        config.access_log = {.kind = LogTarget::Kind::standard_output, .path = {}};
    } else if (text == "off") {
        config.access_log = {.kind = LogTarget::Kind::off, .path = {}};
    } else {
        config.access_log = {.kind = LogTarget::Kind::file, .path = top.file().path(text)};
    }
}

void read_file_names(ConfigReader& top, ServeConfig& config) {
    if (const YamlNode* policy = top.path("policy", config.policy)) {
        config.places.policy = policy->at;
    } else if (top.node().find("policy") == nullptr) {
        top.error(top.node(), "a 'policy' is needed (the policy file's path)");
    }
    top.path("directory", config.directory);
    if (const YamlNode* node = top.text("server_name", config.gateway.server_name)) {
        if (config.gateway.server_name.size() > max_server_name ||
            !is_visible_ascii(config.gateway.server_name)) {
            top.error(*node,
                      cat("server_name is at most ", max_server_name, " visible ASCII characters"));
        }
    }
}

}  // namespace

std::optional<ServeConfig> ServeConfig::load(const std::string& path,
                                             Policy::Environment environment, Problems& problems) {
    std::string text;
    if (!read_file(path, text, problems)) {
        return std::nullopt;
    }
    return parse(path, text, environment, problems);
}

std::optional<ServeConfig> ServeConfig::parse(const std::string& path, std::string_view text,
                                              Policy::Environment environment, Problems& problems) {
    const Problems::Mark before = problems.mark();
    const auto document = YamlDocument::parse(path, text, problems);
    if (document == nullptr) {
        return std::nullopt;
    }
    ServeConfig config;
    config.file = config.gateway.file = path;
    ConfigFile file{.folder = std::filesystem::path(path).parent_path().string(),
                    .reader = Reader(config.file, problems)};
    ConfigReader top(file, document->root(), "serve.yaml");
    if (!document->root().is_mapping()) {
        return std::nullopt;
    }
    read_file_names(top, config);
    read_listeners(top, config);
    read_upstream(top, config);
    read_admin(top, environment, config);
    check_listeners(file, config);
    read_counters(top, environment, config);
    read_bounds(top, config);
    if (const YamlNode* ledger = top.path("ledger", config.ledger)) {
        config.places.ledger = ledger->at;
    }
    read_access_log(top, config);
    top.number("threads", config.gateway.threads, {0, 256});
    top.duration("drain", config.drain, {milliseconds(0), hours(1)});
    top.finish();
    problems.sort_from(before);
    if (problems.errors().size() > before.errors) {
        return std::nullopt;
    }
    return config;
}

}  // namespace ration
