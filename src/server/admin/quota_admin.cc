#include "server/admin/quota_admin.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"
#include "engine/durable.h"
#include "engine/subject.h"
#include "policy/key.h"
#include "server/admin/ledger_admin.h"
#include "server/admin/ledger_ask.h"
#include "server/admin/ledger_json.h"
#include "server/admin/policy_json.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

AdminResponse bad_request(std::string_view message) {
    return admin_error(400, "bad_request", message);
}

AdminResponse unavailable(const absl::Status& status) {
    return admin_error(503, "ledger_unavailable", std::string(status.message()));
}

// Owns what its request views.
struct ObjectsJob final : WaitingJob {
    std::string key;
    std::vector<std::string> objects;
    std::vector<QuotaChange> changes;
};

// A list of ids into `objects`, or what is wrong with it.
std::string read_objects(const Json& list, std::vector<std::string>& objects) {
    if (!list.is_array()) {
        return "Objects are a list of ids.";
    }
    for (const Json& id : list) {
        // Nothing else is written out: nesting of any depth may stand here.
        std::string text = id.is_string()           ? id.get<std::string>()
                           : id.is_number_integer() ? id.dump()
                                                    : std::string();
        if (text.empty() || text.size() > max_object_id_bytes) {
            return cat("An object's id is a string of 1 to ", max_object_id_bytes,
                       " bytes, or a whole number.");
        }
        objects.push_back(std::move(text));
    }
    return objects.size() > max_stated_objects
               ? cat("More than ", max_stated_objects,
                     " objects in one call; PATCH takes them in several.")
               : std::string();
}

// {"objects": [...]} of PUT, {"add": [...], "remove": [...]} of PATCH into the job's request.
std::string read_change(const AdminRequest& request, ObjectsJob& job) {
    const Json body = Json::parse(request.body, nullptr, false);
    const bool states = request.method == "PUT";
    if (!body.is_object() || body.empty()) {
        return states ? R"(The body is {"objects": [...]}.)"
                      : R"(The body is {"add": [...], "remove": [...]}, or one of them.)";
    }
    std::size_t added = 0;
    for (const auto& [name, list] : body.items()) {
        if (states ? name != "objects" : name != "add" && name != "remove") {
            return cat("Unknown member '", is_utf8(name) ? name : "?", "' of the body.");
        }
    }
    for (const char* name : {"objects", "add", "remove"}) {
        if (body.contains(name)) {
            if (std::string wrong = read_objects(body[name], job.objects); !wrong.empty()) {
                return wrong;
            }
        }
        added = name == std::string_view("add") ? job.objects.size() : added;
    }
    if (states) {
        job.request = StateMembers{job.key, job.objects};
        return "";
    }
    for (std::size_t i = 0; i < job.objects.size(); ++i) {
        job.changes.push_back({job.key, job.objects[i], i < added});
    }
    job.request = Settle{0, SettleKind::written, nullptr, job.changes};
    return "";
}

}  // namespace

AdminResponse QuotaAdmin::handle(const AdminRequest& request) {
    absl::StatusOr<AdminQuery> query = AdminQuery::parse(request.query);
    if (!query.ok()) {
        return bad_request(std::string(query.status().message()));
    }
    if (std::optional<AdminResponse> wrong = find(*query)) {
        return *std::move(wrong);
    }
    const bool changes = request.method == "PUT" || request.method == "PATCH";
    const std::string after = changes ? "" : query->take("after").value_or("");
    const absl::StatusOr<std::uint64_t> limit =
        changes ? default_page : query->take_number("limit", default_page, 1, max_page);
    for (const absl::Status& status : {limit.status(), query->finish()}) {
        if (!status.ok()) {
            return bad_request(std::string(status.message()));
        }
    }
    return changes ? change(request) : show(after, *limit);
}

std::optional<AdminResponse> QuotaAdmin::find(AdminQuery& query) {
    const std::optional<std::string> name = query.take("quota");
    if (!name) {
        return bad_request(
            "Which quota? ?quota=NAME and one parameter for each part of its 'per'.");
    }
    for (const QuotaRule& rule : rules_.policy->quotas) {
        if (rule.name == *name) {
            rule_ = &rule;
        }
    }
    if (rule_ == nullptr) {
        return admin_error(404, "unknown_quota", cat("The policy has no quota '", *name, "'."));
    }
    return find_parts(query);
}

std::optional<AdminResponse> QuotaAdmin::find_parts(AdminQuery& query) {
    std::vector<std::string_view> views;
    for (const Selector& part : rule_->key) {
        const std::string name = selector_text(part);
        std::optional<std::string> value = query.take(name);
        if (!value || value->empty()) {
            return bad_request(cat("Quota '", rule_->name, "' is counted by ", name, ": ?", name,
                                   "=... says whose it is."));
        }
        if (part.source == Selector::Source::entity &&
            rules_.directory->entity(part.name, *value) == nullptr) {
            return admin_error(404, "unknown_entity",
                               cat("The directory has no ", part.name, " '", *value, "'."));
        }
        if (part.source == Selector::Source::address) {
            const std::optional<IpAddress> address = IpAddress::parse(*value);
            if (!address) {
                return bad_request(cat("'", *value, "' is not an IP address."));
            }
            const AddressRules& cuts = rules_.policy->address;
            const IpAddress cut = address->cut(address->v4 ? cuts.ipv4_prefix : cuts.ipv6_prefix);
            value->assign(cut.bytes.begin(), cut.bytes.begin() + (cut.v4 ? 4 : 16));
        }
        parts_.push_back(*std::move(value));
    }
    views.assign(parts_.begin(), parts_.end());
    std::array<char, max_built_key_bytes> buffer;
    std::uint16_t rule_bytes = 0;
    key_ = build_key(buffer, rule_->name, views, rule_bytes);
    return std::nullopt;
}

// Of an entity that the key names; nullopt when the cap hangs on something else.
std::optional<std::uint64_t> QuotaAdmin::at_most() const {
    const std::vector<std::string>& path = rule_->at_most.attribute;
    if (path.empty()) {
        return rule_->at_most.fixed;
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const Selector& part = rule_->key[i];
        if (part.source != Selector::Source::entity || part.name != path[0]) {
            continue;
        }
        const Entity* entity = rules_.directory->entity(part.name, parts_[i]);
        const AttributeValue* value = follow(*rules_.directory, entity, std::span(path).subspan(1));
        if (value != nullptr) {
            return static_cast<std::uint64_t>(std::max<std::int64_t>(0, amount_of(*value)));
        }
    }
    return std::nullopt;
}

AdminResponse QuotaAdmin::show(const std::string& after, std::size_t limit) const {
    const absl::StatusOr<std::uint64_t> level = ledger_.level(QuotaUse{key_, 0});
    absl::StatusOr<std::vector<std::string>> objects = ledger_.members(key_, after, limit + 1);
    if (!level.ok() || !objects.ok()) {
        return unavailable(level.ok() ? objects.status() : level.status());
    }
    const bool more = objects->size() > limit;
    objects->resize(std::min(objects->size(), limit));
    Json body = key_json(*rules_.policy, key_);
    body["quota"] = rule_->name;
    body.erase("rule");
    body["level"] = *level;
    body["at_most"] = nullptr;
    if (const std::optional<std::uint64_t> most = at_most()) {
        body["at_most"] = *most;
    }
    body["objects"] = *objects;
    body["next"] = nullptr;
    if (more) {
        body["next"] = objects->back();
    }
    return admin_json(200, body);
}

AdminResponse QuotaAdmin::change(const AdminRequest& request) {
    const auto job = std::make_shared<ObjectsJob>();
    job->key = key_;
    if (const std::string wrong = read_change(request, *job); !wrong.empty()) {
        return bad_request(wrong);
    }
    const absl::StatusOr<LedgerReply> reply = ask_ledger(runner_, job, ledger_patience);
    return reply.ok() ? show("", default_page) : unavailable(reply.status());
}

}  // namespace ration
