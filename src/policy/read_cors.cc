#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/policy_reader.h"
#include "policy/rate.h"

namespace ration {
namespace {

constexpr std::int64_t max_age_limit = 86400;  // browsers keep a pre-check no longer

// "https://app.example.com" or "http://localhost:3000": scheme, host, perhaps a port, no path.
bool is_origin(std::string_view text) {
    const std::size_t colon = text.find("://");
    if (colon == std::string_view::npos || colon == 0 || colon + 3 == text.size()) {
        return false;
    }
    for (const char c : text.substr(0, colon)) {
        if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '-' &&
            c != '.') {
            return false;
        }
    }
    for (const char c : text.substr(colon + 3)) {
        if (c <= 0x20 || c >= 0x7f ||
            std::string_view("/?#@*\"\\").find(c) != std::string_view::npos) {
            return false;
        }
    }
    return true;
}

}  // namespace

void PolicyReader::read_cors(const YamlNode& node) {
    if (!reader_.mapping(node, cors_keys)) {
        return;
    }
    Cors& cors = policy_.cors;
    cors.enabled = true;
    if (const YamlNode* origins = node.find("origins")) {
        read_origins(*origins);
    }
    read_tokens(node.find("expose"), "a header name", cors.expose);
    read_tokens(node.find("methods"), "a method", cors.methods);
    read_tokens(node.find("headers"), "a header name", cors.headers);
    if (const YamlNode* credentials = node.find("credentials")) {
        cors.credentials = reader_.boolean(*credentials, "credentials").value_or(false);
        if (cors.credentials && cors.any_origin) {
            reader_.error(
                credentials->at,
                "credentials together with origins \"*\" would let every site act for the "
                "user; list the origins");
        }
    }
    if (const YamlNode* age = node.find("max_age")) {
        read_max_age(*age);
    }
}

void PolicyReader::read_origins(const YamlNode& node) {
    const auto origins = reader_.words(node, "an origin");
    if (origins.size() > max_list_items) {
        reader_.error(node.at, cat("more than ", max_list_items, " origins"));
        return;
    }
    for (const YamlNode* origin : origins) {
        if (origin->scalar == "*") {
            policy_.cors.any_origin = true;
        } else if (is_origin(origin->scalar)) {
            policy_.cors.origins.push_back(absl::AsciiStrToLower(origin->scalar));
        } else {
            reader_.error(origin->at, "an origin is scheme://host[:port] without a path, or \"*\"");
        }
    }
}

void PolicyReader::read_tokens(const YamlNode* node, std::string_view what,
                               std::vector<std::string>& out) {
    if (node == nullptr) {
        return;
    }
    const auto words = reader_.words(*node, what);
    if (words.size() > max_list_items) {
        reader_.error(node->at, cat("more than ", max_list_items, " values"));
        return;
    }
    for (const YamlNode* word : words) {
        if (is_short_token(word->scalar)) {
            out.push_back(word->scalar);
        } else {
            reader_.error(word->at, cat("not ", what));
        }
    }
}

void PolicyReader::read_max_age(const YamlNode& node) {
    const auto text = reader_.text(node, "max_age");
    if (!text.has_value()) {
        return;
    }
    std::int64_t seconds = -1;
    if (const auto whole = parse_whole(*text)) {
        seconds = *whole <= max_age_limit ? static_cast<std::int64_t>(*whole) : -1;
    } else {
        Nanos period{0};
        if (const auto problem = parse_period(*text, period)) {
            reader_.error_in(node, problem->offset, problem->reason);
            return;
        }
        seconds = std::chrono::duration_cast<std::chrono::seconds>(period).count();
    }
    if (seconds < 0 || seconds > max_age_limit) {
        reader_.error(node.at, "max_age is at most a day (86400 s)");
        return;
    }
    policy_.cors.max_age_seconds = static_cast<std::int32_t>(seconds);
}

}  // namespace ration
