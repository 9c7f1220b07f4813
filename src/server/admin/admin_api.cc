#include "server/admin/admin_api.h"

#include <sodium.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "server/access_log/json_text.h"
#include "server/admin/policy_json.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

// Takes the same time wherever the two differ; their lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
    return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Json problem_list(const std::vector<Problem>& problems) {
    Json list = Json::array();
    for (const Problem& problem : problems) {
        list.push_back({{"file", problem.file},
                        {"line", problem.at.line},
                        {"column", problem.at.column},
                        {"reason", problem.reason}});
    }
    return list;
}

// Whether some limit refuses while the counters give no answer.
bool refuses_without(const InForce& in_force) {
    const auto& limits = in_force.rules.policy->limits;
    return std::any_of(limits.begin(), limits.end(), [](const LimitRule& rule) {
        return !rule.shadow && rule.store_down == StoreDown::closed;
    });
}

}  // namespace

const AdminApi::Endpoint AdminApi::endpoints[] = {
    {"/healthz", "GET", &AdminApi::healthz},   {"/readyz", "GET", &AdminApi::readyz},
    {"/metrics", "GET", &AdminApi::metrics},   {"/v1/policy", "GET", &AdminApi::policy},
    {"/v1/reload", "POST", &AdminApi::reload},
};

AdminResponse admin_json(int status, const Json& body) {
    AdminResponse response;
    response.status = status;
    // Text that is not UTF-8 must not throw here; it is replaced.
    response.body = body.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return response;
}

AdminResponse admin_error(int status, std::string_view type, std::string_view message) {
    return admin_json(status, {{"error", {{"type", type}, {"message", message}}}});
}

AdminResponse admin_method_error(std::string_view allowed) {
    AdminResponse refused =
        admin_error(405, "method_not_allowed", cat("This path takes ", allowed, "."));
    refused.headers.emplace_back("Allow", allowed);
    return refused;
}

AdminResponse AdminApi::handle(const AdminRequest& request) {
    if (!may_enter(request.authorization)) {
        AdminResponse refused = admin_error(
            401, "unauthorized", "This listener needs Authorization: Bearer with its token.");
        refused.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"ration admin\"");
        return refused;
    }
    std::string allowed;
    for (const Endpoint& endpoint : endpoints) {
        if (endpoint.path != request.path) {
            continue;
        }
        if (request.method == endpoint.method ||
            (request.method == "HEAD" && endpoint.method == "GET")) {
            return (this->*endpoint.handler)();
        }
        allowed += cat(allowed.empty() ? "" : ", ", endpoint.method,
                       endpoint.method == "GET" ? ", HEAD" : "");
    }
    if (!allowed.empty()) {
        return admin_method_error(allowed);
    }
    for (AdminSection* section : sections_) {
        if (std::optional<AdminResponse> response = section->handle(request)) {
            return *std::move(response);
        }
    }
    return admin_error(404, "not_found", "There is nothing at this path.");
}

bool AdminApi::may_enter(std::string_view authorization) const {
    const std::string token = backend_.token();
    if (token.empty()) {
        return true;
    }
    constexpr std::string_view scheme = "Bearer ";
    return equal_ignoring_case(authorization.substr(0, scheme.size()), scheme) &&
           equal_in_constant_time(authorization.substr(scheme.size()), token);
}

AdminResponse AdminApi::healthz() {
    return admin_json(200, {{"status", "alive"}});
}

AdminResponse AdminApi::readyz() {
    const ProcessFacts facts = backend_.facts();
    const bool counters = backend_.counters_answer();
    // Limits that are open then keep serving: taking this gateway out would end what they keep up.
    const bool ready = !facts.draining && (counters || !refuses_without(backend_.in_force()));
    return admin_json(
        ready ? 200 : 503,
        {{"status", ready ? "ready" : "not ready"},
         {"draining", facts.draining},
         {"counters", counters ? "answer" : "give no answer"},
         // Routes without ledger rules are served all the same, so it does not end readiness.
         {"ledger", !facts.ledger           ? "none"
                    : facts.ledger->healthy ? "answers"
                                            : "gives no answer"},
         // A reload that failed leaves good rules in force, so it does not end readiness.
         {"last_reload", facts.reload.last_succeeded ? "succeeded" : "failed"}});
}

AdminResponse AdminApi::metrics() {
    AdminResponse response;
    response.content_type = exposition_content_type;
    response.body = exposition(backend_.facts());
    return response;
}

AdminResponse AdminApi::policy() {
    return admin_json(200, policy_json(backend_.in_force()));
}

AdminResponse AdminApi::reload() {
    const ReloadResult result = backend_.reload();
    Json body{{"status", result.ok ? "succeeded" : "failed"},
              {"changed", result.changed},
              {"problems", problem_list(result.problems.errors())},
              {"warnings", problem_list(result.problems.warnings())}};
    if (!result.restart_needed.empty()) {
        body["restart_needed"] = result.restart_needed;
    }
    return admin_json(result.ok ? 200 : 422, body);
}

}  // namespace ration
