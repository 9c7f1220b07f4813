#include "cli/admin_answer.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

std::string reason_in(const Json& body, int status) {
    const bool told = body.is_object() && body.contains("error") && body["error"].is_object() &&
                      body["error"].contains("message") && body["error"]["message"].is_string();
    return told ? body["error"]["message"].get<std::string>() : cat("answered ", status);
}

}  // namespace

int ask_and_print(const AdminOptions& admin, bool json, const AdminQuestion& question,
                  const std::function<void(const nlohmann::ordered_json&)>& print) {
    const absl::StatusOr<AdminReply> reply = ask_admin(admin, question);
    if (!reply.ok()) {
        std::cerr << reply.status().message() << '\n';
        return 2;
    }
    const Json body = Json::parse(reply->body, nullptr, false);
    const bool good = reply->status >= 200 && reply->status < 300 && body.is_object();
    if (json && body.is_object()) {
        std::cout << reply->body;
    } else if (good) {
        print(body);
    }
    if (good) {
        return 0;
    }
    std::cerr << reason_in(body, reply->status) << '\n';
    return reply->status == 404 || reply->status == 409 || reply->status == 422 ? 1 : 2;
}

}  // namespace ration
