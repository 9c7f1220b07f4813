#include "server/admin/ledger_admin.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "server/admin/admin_query.h"
#include "server/admin/ledger_ask.h"
#include "server/admin/ledger_json.h"
#include "server/admin/quota_admin.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view root = "/v1/ledger";
constexpr std::string_view doubts_path = "/v1/ledger/doubts";
constexpr std::string_view quotas_path = "/v1/ledger/quotas";

AdminResponse bad_request(const absl::Status& status) {
    return admin_error(400, "bad_request", std::string(status.message()));
}

// "written" or "not_written"; nullopt when the body says neither.
std::optional<bool> outcome_in(std::string_view body) {
    const Json json = Json::parse(body, nullptr, false);
    if (!json.is_object() || json.size() != 1 || !json.contains("outcome") ||
        !json["outcome"].is_string()) {
        return std::nullopt;
    }
    const auto word = json["outcome"].get<std::string>();
    return word == "written"       ? std::optional(true)
           : word == "not_written" ? std::optional(false)
                                   : std::nullopt;
}

AdminResponse settled(AttemptId attempt, bool written, DoubtOutcome outcome) {
    const std::string_view word = written ? "written" : "not_written";
    switch (outcome) {
        case DoubtOutcome::settled:
        case DoubtOutcome::already:
            return admin_json(200, {{"attempt", attempt},
                                    {"outcome", word},
                                    {"changed", outcome == DoubtOutcome::settled}});
        case DoubtOutcome::otherwise:
            return admin_error(
                409, "settled_otherwise",
                cat("Attempt ", attempt, " is settled as ", written ? "not written." : "written."));
        case DoubtOutcome::running:
            return admin_error(409, "running", cat("Attempt ", attempt, " is running."));
        case DoubtOutcome::unknown:
            break;
    }
    return admin_error(404, "not_found", cat("No attempt ", attempt, " is in doubt."));
}

}  // namespace

std::optional<AdminResponse> LedgerAdmin::handle(const AdminRequest& request) {
    const std::string_view path = request.path;
    if (!path.starts_with(root) || (path.size() > root.size() && path[root.size()] != '/')) {
        return std::nullopt;
    }
    if (parts_.ledger == nullptr) {
        return admin_error(404, "no_ledger", "This server has no ledger.");
    }
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (path == root) {
        return reads ? stats() : admin_method_error("GET, HEAD");
    }
    if (path == doubts_path) {
        return reads ? doubts(request) : admin_method_error("GET, HEAD");
    }
    if (path == quotas_path) {
        return reads || request.method == "PUT" || request.method == "PATCH"
                   ? quotas(request)
                   : admin_method_error("GET, HEAD, PUT, PATCH");
    }
    if (path.starts_with(doubts_path) && path[doubts_path.size()] == '/') {
        return request.method == "POST" ? settle(path.substr(doubts_path.size() + 1), request)
                                        : admin_method_error("POST");
    }
    return std::nullopt;
}

// While the ledger gives no answer it is not asked: whoever wants to know what is wrong must not
// have to wait for it.
AdminResponse LedgerAdmin::stats() {
    LedgerTotals totals = parts_.totals();
    if (totals.healthy) {
        totals.stats = parts_.ledger->stats();
    }
    Json body = stats_json(totals);
    body["rows"] = nullptr;
    if (totals.healthy) {
        if (const absl::StatusOr<LedgerRows> rows = parts_.ledger->rows(); rows.ok()) {
            body["rows"] = rows_json(*rows);
        }
    }
    return admin_json(200, body);
}

AdminResponse LedgerAdmin::doubts(const AdminRequest& request) {
    absl::StatusOr<AdminQuery> query = AdminQuery::parse(request.query);
    if (!query.ok()) {
        return bad_request(query.status());
    }
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<AttemptId>::max());
    const auto after = query->take_number("after", 0, 0, largest);
    const auto limit = query->take_number("limit", default_page, 1, max_page);
    for (const absl::Status& status : {after.status(), limit.status(), query->finish()}) {
        if (!status.ok()) {
            return bad_request(status);
        }
    }
    // One more than the page tells whether there is another.
    const std::vector<DoubtfulAttempt> found =
        parts_.ledger->doubtful(static_cast<AttemptId>(*after), *limit + 1);
    const std::shared_ptr<const Snapshot> rules = parts_.rules();
    Json list = Json::array();
    for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), *limit); ++i) {
        list.push_back(doubt_json(*rules->policy, found[i]));
    }
    Json body{{"doubts", list}, {"next", nullptr}};
    if (found.size() > *limit) {
        body["next"] = found[*limit - 1].attempt;
    }
    return admin_json(200, body);
}

AdminResponse LedgerAdmin::settle(std::string_view attempt, const AdminRequest& request) {
    AttemptId id = 0;
    const auto read = std::from_chars(attempt.data(), attempt.data() + attempt.size(), id);
    if (read.ec != std::errc{} || read.ptr != attempt.data() + attempt.size() || id < 1) {
        return admin_error(404, "not_found", "An attempt is named by its number.");
    }
    const std::optional<bool> written = outcome_in(request.body);
    if (!written || !request.query.empty()) {
        return admin_error(400, "bad_request",
                           "The body is {\"outcome\": \"written\"} or "
                           "{\"outcome\": \"not_written\"}.");
    }
    const auto job = std::make_shared<WaitingJob>();
    job->request = SettleDoubt{id, *written};
    const absl::StatusOr<LedgerReply> reply = ask_ledger(*parts_.runner, job, ledger_patience);
    return reply.ok()
               ? settled(id, *written, reply->doubt)
               : admin_error(503, "ledger_unavailable", std::string(reply.status().message()));
}

AdminResponse LedgerAdmin::quotas(const AdminRequest& request) {
    return QuotaAdmin(*parts_.ledger, *parts_.runner, *parts_.rules()).handle(request);
}

}  // namespace ration
