#include "server/admin/ledger_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "policy/key.h"
#include "request/address.h"
#include "server/admin/policy_json.h"
#include "wire/decimal.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

std::string time_text(Wall at) {
    std::array<char, max_decimal_bytes> room{};
    return std::string(rfc3339(at, room));
}

bool is_plain(std::string_view text) {
    return is_utf8(text) && std::all_of(text.begin(), text.end(), [](char c) {
               return c != '\x7f' && static_cast<unsigned char>(c) >= ' ';
           });
}

std::string hex_text(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "0x";
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

std::string part_text(std::string_view part, bool address) {
    if (address && (part.size() == 4 || part.size() == 16)) {
        IpAddress ip;
        ip.v4 = part.size() == 4;
        std::copy(part.begin(), part.end(), reinterpret_cast<char*>(ip.bytes.data()));
        std::array<char, 48> room;
        return std::string(ip.text(room));
    }
    if (address && part.empty()) {
        return "unix";
    }
    return is_plain(part) ? std::string(part) : hex_text(part);
}

const DurableScope* rule_named(const Policy& policy, std::string_view name) {
    const auto find = [&](const auto& rules) -> const DurableScope* {
        for (const auto& rule : rules) {
            if (rule.name == name) {
                return &rule;
            }
        }
        return nullptr;
    };
    if (const DurableScope* rule = find(policy.ceilings)) {
        return rule;
    }
    const DurableScope* rule = find(policy.quotas);
    return rule != nullptr ? rule : find(policy.idempotency);
}

}  // namespace

Json key_json(const Policy& policy, std::string_view key) {
    const std::optional<SplitKey> split = split_key(key);
    if (!split) {
        return {{"rule", nullptr}, {"of", hex_text(key)}};
    }
    Json json{{"rule", split->name}};
    const DurableScope* rule = rule_named(policy, split->name);
    if (split->digested) {
        json["of"] = nullptr;  // too long to be kept in words
    } else if (rule != nullptr && rule->key.size() == split->parts.size()) {
        json["of"] = Json::object();
        for (std::size_t i = 0; i < split->parts.size(); ++i) {
            const Selector& part = rule->key[i];
            json["of"][selector_text(part)] =
                part_text(split->parts[i], part.source == Selector::Source::address);
        }
    } else {
        json["of"] = Json::array();
        for (const std::string_view part : split->parts) {
            json["of"].push_back(part_text(part, false));
        }
    }
    return json;
}

Json doubt_json(const Policy& policy, const DoubtfulAttempt& doubt) {
    Json json{{"attempt", doubt.attempt}, {"key", nullptr}};
    if (!doubt.identity.empty()) {
        const std::optional<SplitKey> split = split_key(doubt.identity);
        json["key"] = Json::object();
        if (split && split->parts.size() == 3) {
            json["key"] = key_json(policy, split->parts[0]);
            json["key"]["credential"] = part_text(split->parts[1], false);
            json["key"]["key"] = part_text(split->parts[2], false);
        }
    }
    json["started"] = time_text(doubt.started);
    json["expires"] = time_text(doubt.expires);
    json["places"] = Json::array();
    for (const std::string& key : doubt.keys) {
        json["places"].push_back(key_json(policy, key));
    }
    return json;
}

Json stats_json(const LedgerTotals& totals) {
    Json verdicts = Json::object();
    for (std::size_t i = 0; i < verdict_names.size(); ++i) {
        verdicts[verdict_names[i]] = totals.reserved[i];
    }
    Json json{{"status", totals.healthy ? "answers" : "gives no answer"},
              {"last_error", nullptr},
              {"bytes", {{"file", totals.stats.file_bytes}, {"log", totals.stats.log_bytes}}},
              {"queue", totals.queued},
              {"holding", totals.holding},
              {"holds", totals.held},
              {"running", totals.stats.running},
              {"in_doubt", totals.stats.doubtful},
              {"commits", totals.commits},
              {"failures", totals.failures},
              {"sweeps", totals.sweeps},
              {"swept", totals.stats.swept},
              {"reservations", verdicts}};
    if (!totals.last_error.empty()) {
        json["last_error"] = totals.last_error;
    }
    return json;
}

Json rows_json(const LedgerRows& rows) {
    return {{"attempts", rows.attempts},
            {"writes", rows.writes},
            {"periods", rows.periods},
            {"members", rows.members},
            {"blocks", rows.blocks}};
}

}  // namespace ration
