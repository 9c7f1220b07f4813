// Any bytes as a serve.yaml: either there are errors, each at a place of the file and in its order,
// or there are settings within their bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "server/config/serve_config.h"

namespace {

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

const char* environment(const char* name) {
    return std::string_view(name) == "TOKEN" ? "0123456789abcdef" : nullptr;
}

void check_bounds(const ration::ServeConfig& config) {
    const ration::GatewayOptions& gateway = config.gateway;
    require(!config.policy.empty());
    require(!gateway.listeners.empty() && gateway.listeners.size() <= ration::max_listeners);
    for (const ration::ListenerOptions& listener : gateway.listeners) {
        require(!listener.address.empty());
        require(!listener.tls || !listener.tls->certificate_file.empty());
    }
    require(!gateway.upstream.host.empty() && gateway.upstream.max_connections >= 1);
    require(gateway.threads <= 256 && gateway.max_headers >= 8 && gateway.max_headers <= 1000);
    require(config.admin.token.empty() || config.admin.token.size() >= ration::min_token_bytes);
    require(config.drain >= ration::Nanos(0) && config.replicas >= 1);
    require(!config.redis || !config.redis->host.empty());
    require(ration::restart_needed(config, config).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ration::Problems problems;
    const auto config =
        ration::ServeConfig::parse("/nowhere/serve.yaml", text, environment, problems);
    require(config.has_value() == problems.ok());
    ration::Position before{};
    for (const ration::Problem& problem : problems.errors()) {
        require(!problem.reason.empty());
        require(problem.at.line == 0 || std::pair(before.line, before.column) <=
                                            std::pair(problem.at.line, problem.at.column));
        before = problem.at;
    }
    if (config) {
        check_bounds(*config);
    }
    return 0;
}
