#include "server/admin/token_admin.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "server/admin/admin_query.h"
#include "server/admin/ledger_ask.h"
#include "server/admin/policy_json.h"
#include "server/admin/token_order.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view root = "/v1/tokens";
constexpr Nanos patience = std::chrono::seconds(2);

Json token_json(const IssuedToken& token) {
    Json json{{"id", token.id}, {"kind", token.kind}, {token.owner_kind, token.owner}};
    for (const auto& [name, number] : token.numbers) {
        json[name] = number;
    }
    json["name"] = token.name;
    json["created"] = log_time(token.created);
    json["last_used"] =
        token.last_used == token.created ? Json(nullptr) : Json(log_time(token.last_used));
    return json;
}

AdminResponse unavailable(const absl::Status& status) {
    return admin_error(503, "ledger_unavailable", std::string(status.message()));
}

AdminResponse refused(const absl::Status& status) {
    const std::string message(status.message());
    switch (status.code()) {
        case absl::StatusCode::kOutOfRange:
            return admin_error(422, "out_of_range", message);
        case absl::StatusCode::kNotFound:
            return admin_error(422, "unknown_owner", message);
        default:
            return admin_error(400, "bad_request", message);
    }
}

// Owns the token that its request refers to.
struct TokenJob final : WaitingJob {
    IssuedToken token;
};

}  // namespace

std::optional<AdminResponse> TokenAdmin::handle(const AdminRequest& request) {
    const std::string_view path = request.path;
    if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
        return std::nullopt;
    }
    if (parts_.runner == nullptr) {
        return admin_error(404, "no_ledger",
                           "This server has no ledger, where issued tokens are kept.");
    }
    if (path.size() > root.size() + 1) {
        return one(path.substr(root.size() + 1), request);
    }
    if (request.method == "POST") {
        return make(request);
    }
    return request.method == "GET" || request.method == "HEAD"
               ? list(request)
               : admin_method_error("GET, HEAD, POST");
}

AdminResponse TokenAdmin::list(const AdminRequest& request) {
    absl::StatusOr<AdminQuery> query = AdminQuery::parse(request.query);
    if (!query.ok()) {
        return refused(query.status());
    }
    TokenTable::Filter filter{.kind = query->take("kind").value_or(""),
                              .owner = query->take("owner").value_or(""),
                              .after = query->take("after").value_or("")};
    const auto limit = query->take_number("limit", default_token_page, 1, max_token_page);
    for (const absl::Status& status : {limit.status(), query->finish()}) {
        if (!status.ok()) {
            return refused(status);
        }
    }
    filter.limit = static_cast<std::size_t>(*limit) + 1;  // one more tells whether there is another
    std::vector<IssuedToken> found = parts_.table.list(filter);
    const bool more = found.size() == filter.limit;
    if (more) {
        found.pop_back();
    }
    Json tokens = Json::array();
    for (const IssuedToken& token : found) {
        tokens.push_back(token_json(token));
    }
    return admin_json(200, {{"tokens", std::move(tokens)},
                            {"next", more ? Json(found.back().id) : Json(nullptr)}});
}

AdminResponse TokenAdmin::make(const AdminRequest& request) {
    const std::shared_ptr<const Snapshot> rules = parts_.rules();
    const absl::StatusOr<TokenOrder> order = read_token_order(*rules, request.body);
    if (!order.ok()) {
        return refused(order.status());
    }
    if (parts_.table.full()) {
        return admin_error(409, "too_many_tokens",
                           cat("There are ", max_issued_tokens, " tokens; revoke some first."));
    }
    NewToken made = make_token(order->rule->prefix, parts_.random);
    const auto job = std::make_shared<TokenJob>();
    job->token = std::move(made.token);
    job->token.kind = rules->policy->kinds[order->rule->kind];
    job->token.owner_kind = order->rule->owner;
    job->token.owner = order->owner;
    job->token.numbers = order->numbers;
    job->token.name = order->name;
    job->token.created = job->token.last_used = parts_.clock.now().wall;
    job->request = PutToken{&job->token};
    if (const auto reply = ask_ledger(*parts_.runner, job, patience); !reply.ok()) {
        return unavailable(reply.status());
    }
    if (!parts_.table.add(job->token)) {
        return admin_error(500, "internal_error", "The token could not be taken up.");
    }
    Json json = token_json(job->token);
    json["secret"] = made.secret;
    AdminResponse response = admin_json(201, json);
    response.headers.emplace_back("Location", cat(root, "/", job->token.id));
    return response;
}

AdminResponse TokenAdmin::one(std::string_view path_id, const AdminRequest& request) {
    const std::string id(path_id);
    const std::optional<IssuedToken> token = parts_.table.get(id);
    if (!token) {
        return admin_error(404, "not_found", "There is no such token.");
    }
    if (request.method == "GET" || request.method == "HEAD") {
        return admin_json(200, token_json(*token));
    }
    if (request.method == "DELETE") {
        return revoke(id);
    }
    if (request.method == "PATCH" || request.method == "PUT" || request.method == "POST") {
        return admin_error(409, "fixed_at_creation",
                           "What a token may do is fixed when it is made: revoke it and create "
                           "another one.");
    }
    return admin_method_error("GET, HEAD, DELETE");
}

AdminResponse TokenAdmin::revoke(const std::string& id) {
    const auto job = std::make_shared<TokenJob>();
    job->token.id = id;
    job->request = DropToken{job->token.id};
    if (const auto reply = ask_ledger(*parts_.runner, job, patience); !reply.ok()) {
        return unavailable(reply.status());
    }
    parts_.table.remove(id);
    return admin_json(200, {{"id", id}, {"revoked", true}});
}

}  // namespace ration
