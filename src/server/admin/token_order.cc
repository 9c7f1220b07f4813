#include "server/admin/token_order.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/utf8.h"
#include "policy/directory_reader.h"
#include "server/admin/token_admin.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

absl::Status wrong(const std::string& sentence) {
    return absl::InvalidArgumentError(sentence);
}

std::string kinds_of(const Policy& policy) {
    std::string list;
    for (const IssueRule& rule : policy.issues) {
        list += cat(list.empty() ? "" : ", ", policy.kinds[rule.kind], " (of a ", rule.owner, ")");
    }
    return list;
}

// The rule that is named, or else the only one whose owner's kind the body has.
absl::StatusOr<const IssueRule*> rule_for(const Policy& policy, const Json& body) {
    const IssueRule* found = nullptr;
    if (body.contains("kind") && !body["kind"].is_string()) {
        return wrong("A kind is a word.");
    }
    for (const IssueRule& rule : policy.issues) {
        const bool named = body.contains("kind")
                               ? body["kind"].get<std::string>() == policy.kinds[rule.kind]
                               : body.contains(rule.owner);
        if (named && found != nullptr) {
            return wrong(cat("Say which kind: ", kinds_of(policy), "."));
        }
        found = named ? &rule : found;
    }
    if (found == nullptr) {
        return wrong(policy.issues.empty()
                         ? std::string("The policy issues no tokens.")
                         : cat("Say whose it is. Issued are: ", kinds_of(policy), "."));
    }
    return found;
}

bool is_id(std::string_view text) {
    return !text.empty() && text.size() <= max_id_bytes && is_utf8(text) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
}

absl::Status read_owner(const Snapshot& rules, const Json& body, TokenOrder& order) {
    const std::string& kind = order.rule->owner;
    if (!body.contains(kind) || !body[kind].is_string() || !is_id(body[kind].get<std::string>())) {
        return wrong(cat("'", kind, "' is the id of the ", kind, " it belongs to."));
    }
    order.owner = body[kind].get<std::string>();
    if (rules.directory->has_kind(kind) && rules.directory->entity(kind, order.owner) == nullptr) {
        return absl::NotFoundError(cat("The directory has no ", kind, " '", order.owner, "'."));
    }
    return absl::OkStatus();
}

absl::Status read_number(const IssuedNumber& number, const Json& body, TokenOrder& order) {
    std::int64_t value = number.otherwise;
    if (body.contains(number.name)) {
        const Json& written = body[number.name];
        const bool whole = written.is_number_integer();
        const bool huge =
            written.is_number_unsigned() && written.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
        value = whole && !huge ? written.get<std::int64_t>() : number.most + 1;
        if (value < number.least || value > number.most) {
            return absl::OutOfRangeError(cat("'", number.name, "' is a whole number from ",
                                             number.least, " to ", number.most, "."));
        }
    }
    order.numbers.emplace_back(number.name, value);
    return absl::OkStatus();
}

absl::Status read_name(const Json& body, TokenOrder& order) {
    if (!body.contains("name")) {
        return absl::OkStatus();
    }
    order.name = body["name"].is_string() ? body["name"].get<std::string>() : std::string();
    const bool printable = std::all_of(order.name.begin(), order.name.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    });
    if (!body["name"].is_string() || order.name.size() > max_token_name_bytes || !printable) {
        return wrong(cat("A name is text of at most ", max_token_name_bytes, " bytes."));
    }
    return absl::OkStatus();
}

absl::Status check_members(const Policy& policy, const Json& body, const TokenOrder& order) {
    for (const auto& [member, value] : body.items()) {
        const bool known = member == "kind" || member == "name" || member == order.rule->owner ||
                           std::any_of(order.numbers.begin(), order.numbers.end(),
                                       [&](const auto& number) { return number.first == member; });
        if (!known) {
            return wrong(cat("A ", policy.kinds[order.rule->kind], " has no '",
                             is_utf8(member) ? member : "?", "'."));
        }
    }
    return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenOrder> read_token_order(const Snapshot& rules, std::string_view text) {
    const Json body = Json::parse(text, nullptr, false);
    if (!body.is_object()) {
        return wrong("The body is a JSON object.");
    }
    const auto rule = rule_for(*rules.policy, body);
    if (!rule.ok()) {
        return rule.status();
    }
    TokenOrder order{.rule = *rule, .owner = {}, .numbers = {}, .name = {}};
    if (absl::Status status = read_owner(rules, body, order); !status.ok()) {
        return status;
    }
    for (const IssuedNumber& number : order.rule->numbers) {
        if (absl::Status status = read_number(number, body, order); !status.ok()) {
            return status;
        }
    }
    if (absl::Status status = read_name(body, order); !status.ok()) {
        return status;
    }
    if (absl::Status status = check_members(*rules.policy, body, order); !status.ok()) {
        return status;
    }
    return order;
}

}  // namespace ration
