#include "server/admin/block_admin.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "server/admin/admin_query.h"
#include "server/admin/policy_json.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

AdminResponse bad_request(std::string_view message) {
    return admin_error(400, "bad_request", message);
}

// Text, or nothing when the member is not there.
std::optional<std::string> text_in(const Json& body, const char* name, bool& good) {
    if (!body.contains(name)) {
        return std::nullopt;
    }
    good = good && body[name].is_string();
    return body[name].is_string() ? std::optional(body[name].get<std::string>()) : std::nullopt;
}

}  // namespace

std::optional<AdminResponse> BlockAdmin::handle(const AdminRequest& request) {
    if (request.path == "/v1/blocks") {
        return request.method == "GET" || request.method == "HEAD"
                   ? list(request)
                   : admin_method_error("GET, HEAD");
    }
    if (request.path == "/v1/blocks/lift") {
        return request.method == "POST" ? lift(request) : admin_method_error("POST");
    }
    return std::nullopt;
}

AdminResponse BlockAdmin::list(const AdminRequest& request) {
    absl::StatusOr<AdminQuery> query = AdminQuery::parse(request.query);
    if (!query.ok()) {
        return bad_request(std::string(query.status().message()));
    }
    const auto limit = query->take_number("limit", max_block_page, 1, max_block_page);
    for (const absl::Status& status : {limit.status(), query->finish()}) {
        if (!status.ok()) {
            return bad_request(std::string(status.message()));
        }
    }
    const Wall now = clock_.now().wall;
    Json blocks = Json::array();
    for (const ListedBlock& block : book_.list(static_cast<std::size_t>(*limit), now)) {
        const Nanos left = block.until - now;
        blocks.push_back({{"rule", block.rule},
                          {"subject", block.subject},
                          {"level", block.level},
                          {"until", log_time(block.until)},
                          {"seconds_left",
                           (left + std::chrono::seconds(1) - Nanos(1)) / std::chrono::seconds(1)}});
    }
    return admin_json(200, {{"blocks", std::move(blocks)}});
}

AdminResponse BlockAdmin::lift(const AdminRequest& request) {
    const Json body = Json::parse(request.body, nullptr, false);
    bool good = body.is_object();
    const auto subject = good ? text_in(body, "subject", good) : std::nullopt;
    const auto rule = good ? text_in(body, "rule", good) : std::nullopt;
    if (!good || !subject || body.size() != (rule ? 2U : 1U)) {
        return bad_request(
            R"(The body is {"subject": "203.0.113.7"}, and "rule" if only one is meant.)");
    }
    const auto lifted = book_.lift(*subject, rule.value_or(""), clock_.now());
    if (!lifted) {
        return admin_error(503, "counters_unavailable",
                           "The counters give no answer: a block may hold still.");
    }
    return admin_json(200, {{"lifted", *lifted}});
}

}  // namespace ration
