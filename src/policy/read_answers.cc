// Every answer that ration gives is a Refusal of the policy. The built-in ones come first, with
// plain defaults; `refusals` then changes them or adds others, and what has no body of its own
// takes the error shape.
#include <array>

#include "base/text.h"
#include "policy/policy_reader.h"

namespace ration {
namespace {

struct Default {
    std::string_view name;
    int status;
    std::string_view message;
    std::string_view retry_after = {};
};

// In the order of BuiltIn; the last two are what a limit and a quota without `refuse` answer.
constexpr std::array<Default, static_cast<std::size_t>(BuiltIn::count) + 2> defaults{{
    {"bad_request", 400, "The request is malformed."},
    {"unauthorized", 401, "A valid credential is required."},
    {"forbidden", 403, "This credential may not be used here."},
    {"not_found", 404, "There is nothing at this path."},
    {"request_timeout", 408, "The request took too long to arrive."},
    {"payload_too_large", 413, "The request body is too large."},
    {"uri_too_long", 414, "The request target is too long."},
    {"headers_too_large", 431, "The request headers are too large."},
    {"expectation_failed", 417, "The expectation cannot be met."},
    {"upgrade_refused", 501, "Protocol upgrades are not supported."},
    {"bad_gateway", 502, "The service could not be reached."},
    {"unavailable", 503, "The service is not available right now.", "1"},
    {"rate_limiter_unavailable", 503, "The rate limiter is not available right now.", "60"},
    {"gateway_timeout", 504, "The service took too long to answer."},
    {"internal_error", 500, "Something went wrong."},
    {"idempotency_mismatch", 422, "This idempotency key was used with a different request."},
    {"idempotency_in_progress", 409, "A request with this idempotency key is running.", "1"},
    {"idempotency_in_doubt", 409, "The outcome of the first request with this key is not known."},
    {"idempotency_response_not_kept", 409,
     "The request with this key succeeded; its response was not kept."},
    {"contention", 503, "Two writes contended. Please try again.", "1"},
    {"ledger_unavailable", 503, "Writing is not possible right now. Please try again.", "1"},
    {"rate_limited", 429, "Too many requests.", "{retry_after}"},
    {"plan_quota", 402, "The plan does not allow more."},
}};

// Set by the server itself, from what is really sent.
constexpr std::array<std::string_view, 9> own_headers{
    "Content-Length",    "Transfer-Encoding", "Connection", "Date",        "Trailer",
    "Ration-Request-Id", "Upgrade",           "Keep-Alive", "Content-Type"};

constexpr std::string_view custom_message = "The request was refused.";

Template text_template(std::string_view source) {
    std::string error;
    return Template::text(source, error);
}

Template plain_error_shape() {
    std::string error;
    Template::Node inner;
    inner.kind = Template::Node::Kind::object;
    inner.names = {Template::json_member_name("type"), Template::json_member_name("message")};
    inner.children = {Template::json_scalar("{type}", error),
                      Template::json_scalar("{message}", error)};
    Template::Node outer;
    outer.kind = Template::Node::Kind::object;
    outer.names = {Template::json_member_name("error")};
    outer.children = {std::move(inner)};
    return Template::json(std::move(outer));
}

// RFC 8259 6, and what means the same to every reader of JSON: no hex, no octal, no ".5".
bool is_json_number(std::string_view text) {
    std::size_t i = text.starts_with('-') ? 1 : 0;
    const auto digits = [&] {
        const std::size_t start = i;
        while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
            ++i;
        }
        return i - start;
    };
    const bool leading_zero = i < text.size() && text[i] == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (leading_zero && whole > 1)) {
        return false;
    }
    if (i < text.size() && text[i] == '.') {
        ++i;
        if (digits() == 0) {
            return false;
        }
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
            ++i;
        }
        if (digits() == 0) {
            return false;
        }
    }
    return i == text.size();
}

}  // namespace

void PolicyReader::read_answers(const YamlNode& root) {
    for (std::size_t i = 0; i < defaults.size(); ++i) {
        const Default& plain = defaults[i];
        Refusal refusal;
        refusal.name = refusal.type = std::string(plain.name);
        refusal.status = plain.status;
        refusal.message = std::string(plain.message);
        if (!plain.retry_after.empty()) {
            refusal.headers.emplace_back("Retry-After", text_template(plain.retry_after));
        }
        refusal_index_.emplace(refusal.name, static_cast<std::uint16_t>(i));
        policy_.refusals.push_back(std::move(refusal));
        if (i < policy_.built_in.size()) {
            policy_.built_in[i] = static_cast<std::uint16_t>(i);
        }
    }
    refusal_at_.resize(defaults.size());
    const YamlNode* shape = root.find("error_shape");
    error_shape_ = shape != nullptr ? read_json(*shape) : plain_error_shape();
    for (Refusal& refusal : policy_.refusals) {
        refusal.body = error_shape_.value_or(Template{});
    }
    const YamlNode* written = root.find("refusals");
    if (written == nullptr || !reader_.any_mapping(*written, "refusals")) {
        return;
    }
    if (written->entries.size() > max_refusals) {
        too_many(written->at, cat("more than ", max_refusals, " answers"));
    }
    for (std::size_t i = 0; i < written->entries.size(); ++i) {
        const YamlNode::Entry& entry = written->entries[i];
        if (i < max_refusals) {
            read_refusal(*entry.key, *entry.value);
        } else {
            refusal_index_.emplace(entry.key->scalar, refusal_index_.at("rate_limited"));
        }
    }
}

void PolicyReader::read_refusal(const YamlNode& key, const YamlNode& node) {
    const std::string& name = key.scalar;
    if (!is_identifier(name)) {
        reader_.error(key.at, "an answer's name is letters, digits, '_' and '-', at most 64");
        return;
    }
    const auto [index, added] =
        refusal_index_.emplace(name, static_cast<std::uint16_t>(policy_.refusals.size()));
    if (added) {
        Refusal fresh;
        fresh.name = fresh.type = name;
        fresh.message = std::string(custom_message);
        fresh.headers.emplace_back("Retry-After", text_template("{retry_after}"));
        fresh.body = error_shape_.value_or(Template{});
        policy_.refusals.push_back(std::move(fresh));
        refusal_at_.emplace_back();
    }
    refusal_at_[index->second] = key.at;
    if (!reader_.mapping(node, refusal_keys)) {
        return;
    }
    Refusal& refusal = policy_.refusals[index->second];
    if (const YamlNode* status = node.find("status")) {
        const auto number = reader_.whole(*status, "status", 200, 599);
        refusal.status = static_cast<int>(number.value_or(429));
        if (number == 204U || number == 205U || number == 304U) {
            reader_.error(status->at, cat("an answer with status ", *number, " has no body"));
        }
    }
    for (const auto& [what, target] :
         {std::pair{"type", &refusal.type}, {"message", &refusal.message}}) {
        if (const YamlNode* value = node.find(what)) {
            *target = reader_.text(*value, what).value_or("");
        }
    }
    if (const YamlNode* headers = node.find("headers")) {
        read_refusal_headers(*headers, refusal);
    }
    if (const YamlNode* body = node.find("body")) {
        read_body(*body, refusal);
    }
    if (const YamlNode* type = node.find("content_type")) {
        refusal.content_type = reader_.text(*type, "content_type").value_or("");
        for (const char c : refusal.content_type) {
            if (c < 0x20 || c > 0x7e) {
                reader_.error(type->at, "content_type has characters that a header cannot hold");
                break;
            }
        }
    }
}

void PolicyReader::read_refusal_headers(const YamlNode& node, Refusal& refusal) {
    refusal.headers.clear();
    if (!reader_.any_mapping(node, "headers")) {
        return;
    }
    if (node.entries.size() > max_refusal_headers) {
        reader_.error(node.at, cat("more than ", max_refusal_headers, " headers"));
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        const std::string& name = entry.key->scalar;
        if (!is_short_token(name)) {
            reader_.error(entry.key->at, "not a header name");
            continue;
        }
        for (const std::string_view own : own_headers) {
            if (equal_ignoring_case(own, name)) {
                reader_.error(entry.key->at, cat("'", own, "' is set by ration itself"));
            }
        }
        for (const auto& [earlier, value] : refusal.headers) {
            if (equal_ignoring_case(earlier, name)) {
                reader_.error(entry.key->at, "this header is there already");
            }
        }
        const auto text = reader_.text(*entry.value, "a header's value");
        std::string error;
        Template value = Template::text(text.value_or(""), error);
        if (!error.empty()) {
            reader_.error(entry.value->at, error);
            continue;
        }
        refusal.headers.emplace_back(name, std::move(value));
    }
}

void PolicyReader::read_body(const YamlNode& node, Refusal& refusal) {
    if (node.is_mapping() || node.is_sequence()) {
        refusal.body = read_json(node).value_or(Template{});
        return;
    }
    std::string error;
    refusal.body = Template::lines(node.scalar, error);
    refusal.content_type = "text/plain; charset=utf-8";
    if (!error.empty()) {
        reader_.error(node.at, error);
    }
}

std::optional<Template> PolicyReader::read_json(const YamlNode& node) {
    if (!node.is_mapping() && !node.is_sequence()) {
        reader_.error(node.at, cat("a body is a mapping, not ", node.kind_name()));
        return std::nullopt;
    }
    return Template::json(json_node(node));
}

Template::Node PolicyReader::json_node(const YamlNode& node) {
    Template::Node out;
    switch (node.kind) {
        case YamlNode::Kind::null:
            return Template::json_literal("null");
        case YamlNode::Kind::scalar: {
            if (!node.quoted &&
                (node.scalar == "true" || node.scalar == "false" || is_json_number(node.scalar))) {
                return Template::json_literal(node.scalar);
            }
            std::string error;
            out = Template::json_scalar(node.scalar, error);
            if (!error.empty()) {
                reader_.error(node.at, error);
            }
            return out;
        }
        case YamlNode::Kind::sequence:
            out.kind = Template::Node::Kind::array;
            for (const YamlNode* item : node.items) {
                out.children.push_back(json_node(*item));
            }
            return out;
        case YamlNode::Kind::mapping:
            out.kind = Template::Node::Kind::object;
            for (const YamlNode::Entry& entry : node.entries) {
                out.names.push_back(Template::json_member_name(entry.key->scalar));
                out.children.push_back(json_node(*entry.value));
            }
            return out;
    }
    return out;
}

std::optional<std::uint16_t> PolicyReader::refusal_named(const YamlNode& node) {
    const auto name = reader_.text(node, "the name of an answer");
    if (!name.has_value()) {
        return std::nullopt;
    }
    const auto found = refusal_index_.find(*name);
    if (found != refusal_index_.end()) {
        return found->second;
    }
    std::vector<std::string_view> known;
    known.reserve(policy_.refusals.size());
    for (const Refusal& refusal : policy_.refusals) {
        known.push_back(refusal.name);
    }
    reader_.unknown(node.at, "answer", *name, known);
    return std::nullopt;
}

}  // namespace ration
