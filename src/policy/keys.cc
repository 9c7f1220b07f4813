#include "policy/keys.h"

#include <array>

namespace ration {
namespace {

// Shorthands for schemas used more than once.
constexpr std::string_view words_schema = R"({"$ref": "#/$defs/words"})";
constexpr std::string_view text_schema = R"({"type": "string"})";
constexpr std::string_view boolean_schema = R"({"type": "boolean"})";
constexpr std::string_view numbers_schema = R"({"$ref": "#/$defs/numbers"})";

constexpr std::array policy_table{
    Key{"policy", R"({"$ref": "#/$defs/name"})", "The policy's name.", true},
    Key{"unmatched", R"({"$ref": "#/$defs/unmatched"})",
        "What becomes of a request that no route matches: refuse (404) or forward."},
    Key{"trailing_slash", R"({"$ref": "#/$defs/trailing_slash"})",
        "Whether /x and /x/ are the same route or distinct."},
    Key{"routes",
        R"({"type": "object", "additionalProperties": {"$ref": "#/$defs/route_patterns"}})",
        "Name of each route, and the methods and path it stands for."},
    Key{"cors", R"({"$ref": "#/$defs/cors"})", "What browsers on other origins may do."},
    Key{"identify", R"({"$ref": "#/$defs/identify"})", "Who is calling."},
    Key{"limits", R"({"type": "array", "items": {"$ref": "#/$defs/limit"}})",
        "The rate limits; all that apply to a request are charged together."},
    Key{"refusals", R"({"type": "object", "additionalProperties": {"$ref": "#/$defs/refusal"}})",
        "Answers by name; a built-in answer's name overrides it."},
    Key{"error_shape", R"({"$ref": "#/$defs/body"})",
        "Body of every answer that has none of its own; {type} and {message} are filled in."},
    Key{"ceilings", R"({"type": "array", "items": {"$ref": "#/$defs/ceiling"}})",
        "Durable counts of things actually written, in the order they are reported."},
    Key{"quotas", R"({"type": "array", "items": {"$ref": "#/$defs/quota"}})",
        "A plan's caps on how many things there are."},
    Key{"idempotency", R"({"type": "array", "items": {"$ref": "#/$defs/idempotency_rule"}})",
        "Routes on which a repeated key replays the first answer."},
    Key{"strikes", R"({"type": "array", "items": {"$ref": "#/$defs/strike"}})",
        "Failures that lead to a timed, growing block."},
};

constexpr std::array route_table{
    Key{"match", words_schema, "One pattern or several: GET /v1/things/{id}.", true},
};

constexpr std::array cors_table{
    Key{"origins", words_schema, "Origins that may read answers; \"*\" for all.", true},
    Key{"expose", words_schema, "Response headers that scripts may read."},
    Key{"methods", words_schema, "Methods allowed; left out: the one asked for."},
    Key{"headers", words_schema, "Request headers allowed; left out: those asked for."},
    Key{"credentials", boolean_schema, "Whether cookies may be sent; not with origins \"*\"."},
    Key{"max_age", R"({"type": ["string", "integer"]})",
        "How long a browser may keep a pre-check: 10 min, or seconds."},
};

constexpr std::array identify_table{
    Key{"address", R"({"$ref": "#/$defs/address"})", "How the caller's address is found."},
    Key{"credentials",
        R"({"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/credential"},
            {"type": "array", "items": {"$ref": "#/$defs/credential"}, "minItems": 1}]}})",
        "Kinds of credentials, and where each stands in a request."},
    Key{"accepts", R"({"type": "object", "additionalProperties": {"$ref": "#/$defs/words"}})",
        "Kinds that each route accepts; else: all other routes."},
    Key{"attributes", R"({"type": "object", "additionalProperties": {"type": "string"}})",
        "Entities named by the request itself: team: path.teamId."},
    Key{"issue", R"({"type": "object", "additionalProperties": {"$ref": "#/$defs/issue"}})",
        "Kinds of credentials that operators can make at run time."},
};

constexpr std::array issue_table{
    Key{"owner", text_schema, "Kind of the entity that such a credential belongs to: user.", true},
    Key{"numbers",
        R"({"type": "object", "additionalProperties": {"$ref": "#/$defs/issued_number"}})",
        "Numbers that it has, fixed when it is made: rate_limit_per_min."},
};

constexpr std::array issued_number_table{
    Key{"from", R"({"type": "integer", "minimum": 0})", "The least that can be asked for.", true},
    Key{"to", R"({"type": "integer", "minimum": 0})", "The most.", true},
    Key{"default", R"({"type": "integer", "minimum": 0})", "What it is when nothing is said.",
        true},
};

constexpr std::array address_table{
    Key{"header", text_schema,
        "X-Forwarded-For, Forwarded, none, or a header that holds one address."},
    Key{"trusted", words_schema, "Networks of the proxies in front: 10.0.0.0/8."},
    Key{"ipv6_prefix", R"({"type": "integer", "minimum": 1, "maximum": 128})",
        "Bits of an IPv6 address that make one caller (64)."},
    Key{"ipv4_prefix", R"({"type": "integer", "minimum": 1, "maximum": 32})",
        "Bits of an IPv4 address that make one caller (32)."},
    Key{"trust_unix", boolean_schema, "Whether a Unix-socket peer is a proxy in front (false)."},
};

constexpr std::array credential_table{
    Key{"bearer", text_schema, "Authorization: Bearer value that fits this pattern: pk_*."},
    Key{"header", text_schema, "Header that holds the key."},
    Key{"cookie", text_schema, "Cookie that holds the secret."},
    Key{"value", text_schema, "Pattern of the header's or cookie's value: k_*."},
};

constexpr std::array limit_table{
    Key{"name", R"({"$ref": "#/$defs/name"})",
        "The limit's identity: use so far belongs to this name.", true},
    Key{"routes", words_schema, "Routes it applies to; left out: all requests."},
    Key{"except_routes", words_schema, "All requests but those of these routes."},
    Key{"methods", words_schema, "Methods it applies to; left out: all. GET includes HEAD."},
    Key{"credentials", words_schema,
        "Kinds it applies to, anonymous and unknown among them; left out: all."},
    Key{"per", words_schema,
        "What is counted apart: route, method, address, credential, an entity kind, "
        "account.plan, path.x, query.x, header.X; []: one counter for all.",
        true},
    Key{"token_bucket", numbers_schema, "A bucket that starts full and refills continuously."},
    Key{"fixed_window", numbers_schema, "Windows aligned to the clock (UTC)."},
    Key{"sliding_window", numbers_schema, "At most so many in any span of the period, exactly."},
    Key{"sliding_counter", numbers_schema, "The same from two window counts."},
    Key{"concurrency", R"({"$ref": "#/$defs/in_flight"})", "At most so many requests in flight."},
    Key{"cost", R"({"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/cost"}]})",
        "What one request takes (1)."},
    Key{"count", R"({"$ref": "#/$defs/count"})",
        "Whether refused requests count too: admissions (not) or attempts."},
    Key{"headers", R"({"$ref": "#/$defs/header_family"})",
        "Rate-limit headers told on answers (none)."},
    Key{"refuse", text_schema, "Name of the answer that refuses (rate_limited)."},
    Key{"store_down", R"({"anyOf": [{"$ref": "#/$defs/store_down"},
        {"$ref": "#/$defs/store_down_by_environment"}]})",
        "What happens when the counters give no answer (open)."},
    Key{"shadow", boolean_schema, "Decide and report, but do not enforce."},
};

constexpr std::array rate_table{
    Key{"rate", text_schema, "60/min, 10 per 13s."},
    Key{"burst", R"({"type": "integer", "minimum": 1})",
        "Most tokens a bucket holds; left out: the rate's number."},
    Key{"limit", R"({"type": ["integer", "string"]})",
        "A whole number, or an attribute: credential.rate_limit_per_min."},
    Key{"every", text_schema, "The period: minute, 13s, 365 days."},
    Key{"count", R"({"$ref": "#/$defs/count"})",
        "Whether refused requests count too: admissions (not) or attempts."},
};

constexpr std::array cost_table{
    Key{"units", R"({"type": "integer", "minimum": 1})", "Cost of a request (1)."},
    Key{"by_route",
        R"({"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}})",
        "Cost by route."},
    Key{"from", R"({"$ref": "#/$defs/cost_source"})", "Where the request states its cost."},
    Key{"settle", R"({"$ref": "#/$defs/cost_source"})",
        "Where the answer states the true cost; the difference is charged or given back."},
};

constexpr std::array cost_source_table{
    Key{"header", text_schema, "Header that holds the number.", true},
};

constexpr std::array store_down_table{
    Key{"closed_if", R"({"type": "string", "pattern": "^env\\."})",
        "env.NAME: true, 1, yes, on: closed; unset, empty, false, 0, no, off: open.", true},
};

constexpr std::array refusal_table{
    Key{"status", R"({"type": "integer", "minimum": 200, "maximum": 599})", "Status (429)."},
    Key{"headers", R"({"type": "object", "additionalProperties": {"type": ["string", "integer"]}})",
        "Headers; {retry_after} and other holes are filled in (Retry-After)."},
    Key{"body", R"({"$ref": "#/$defs/body"})",
        "A mapping becomes JSON, text is sent as it is; left out: error_shape."},
    Key{"content_type", text_schema, "Content-Type of the body."},
    Key{"type", text_schema, "What {type} stands for (the answer's name)."},
    Key{"message", text_schema, "What {message} stands for."},
};

constexpr std::array strike_table{
    Key{"name", R"({"type": "string", "minLength": 1, "maxLength": 48})", "The rule's identity.",
        true},
    Key{"routes", words_schema, "Routes whose attempts are counted; left out: all requests."},
    Key{"methods", words_schema, "Methods whose attempts are counted; left out: all."},
    Key{"credentials", words_schema,
        "Kinds whose attempts are counted, anonymous and unknown among them; left out: all."},
    Key{"per", words_schema, "Who is counted and blocked apart, as for a limit.", true},
    Key{"failed", R"({"anyOf": [{"$ref": "#/$defs/status"},
        {"type": "array", "items": {"$ref": "#/$defs/status"}, "minItems": 1}]})",
        "Statuses of the answer that are failures (401)."},
    Key{"failures", text_schema, "How many lead to a block, in which span: 5 per 10 min.", true},
    Key{"block", R"({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/block"}]})",
        "How long the block lasts: 10 min, or its first length and how it grows.", true},
    Key{"blocks", words_schema,
        "Routes that the block is for besides; left out: the requests counted, no others."},
    Key{"cleared_by_success", boolean_schema, "Whether a 2xx or 3xx forgets the failures (false)."},
    Key{"refuse", text_schema, "Name of the answer while blocked (rate_limited)."},
    Key{"store_down", R"({"anyOf": [{"$ref": "#/$defs/store_down"},
        {"$ref": "#/$defs/store_down_by_environment"}]})",
        "What happens when the counters give no answer (open)."},
};

constexpr std::array block_table{
    Key{"first", text_schema, "How long the first block lasts; each repeat lasts twice as long.",
        true},
    Key{"at_most", text_schema, "The longest block.", true},
    Key{"forget", text_schema,
        "A repeat that begins so long after the last block is a first (24h)."},
};

constexpr std::array ceiling_table{
    Key{"name", R"({"$ref": "#/$defs/name"})", "The ceiling's identity.", true},
    Key{"routes", words_schema, "Routes whose successes are counted.", true},
    Key{"credentials", words_schema, "Kinds it applies to; left out: all."},
    Key{"per", words_schema, "What is counted apart, as for a limit.", true},
    Key{"at_most", text_schema,
        "15 per day in workspace.timezone; account.booking_volume per billing period, "
        "billing quarter or billing year [from account.start] [in account.timezone].",
        true},
    Key{"refuse", text_schema, "Name of the answer that refuses (rate_limited)."},
};

constexpr std::array quota_table{
    Key{"name", R"({"$ref": "#/$defs/name"})", "The quota's identity.", true},
    Key{"credentials", words_schema, "Kinds it applies to; left out: all."},
    Key{"per", words_schema, "Whose things are counted, as for a limit.", true},
    Key{"at_most", R"({"type": ["integer", "string"]})",
        "A whole number, or an attribute: account.plan.calendars.", true},
    Key{"up", R"({"$ref": "#/$defs/objects"})",
        "Routes that make a thing, and where its id stands: create: body.id.", true},
    Key{"down", R"({"$ref": "#/$defs/objects"})", "Routes that remove one: delete: path.id."},
    Key{"refuse", R"({"anyOf": [{"type": "string"},
        {"type": "object", "additionalProperties": {"type": "string"}}]})",
        "Name of the answer that refuses (plan_quota), or names by kind, and else."},
};

constexpr std::array idempotency_table{
    Key{"name", R"({"$ref": "#/$defs/name"})", "The rule's name (idempotency)."},
    Key{"routes", words_schema, "Routes that take a key.", true},
    Key{"credentials", words_schema, "Kinds it applies to; left out: all."},
    Key{"header", text_schema, "Header that holds the key (Idempotency-Key)."},
    Key{"required", boolean_schema, "Whether a request without a key is refused (400)."},
    Key{"scope", words_schema, "Whose keys are apart, as the parts of a limit's key.", true},
    Key{"keep", text_schema, "How long a result is kept (24h)."},
    Key{"compare", R"({"$ref": "#/$defs/compare"})",
        "How bodies are compared: JSON by_value, or as bytes."},
    Key{"doubt", R"({"$ref": "#/$defs/doubt"})",
        "What resolves an unknown outcome: forward again with the same key, probe, or refuse."},
    Key{"probe", R"({"$ref": "#/$defs/probe"})",
        "With doubt: probe: how the upstream is asked what became of a key."},
    Key{"max_body", R"({"type": "integer", "minimum": 1})",
        "Bytes of a keyed request's body at most (1 MiB); a larger one is 413."},
    Key{"max_answer", R"({"type": "integer", "minimum": 1})",
        "Bytes of an answer that are kept at most (1 MiB)."},
};

constexpr std::array probe_table{
    Key{"path", R"({"type": "string", "pattern": "^/"})",
        "Path and query of the GET; {key} and path parameters are holes.", true},
    Key{"status", R"({"type": "integer", "minimum": 200, "maximum": 299})",
        "Status of the replay; left out: the probe's own."},
};

constexpr std::array<std::string_view, 2> compare_list{"by_value", "bytes"};
constexpr std::array<std::string_view, 3> doubt_list{"forward", "refuse", "probe"};
constexpr std::array<std::string_view, 2> unmatched_list{"refuse", "forward"};
constexpr std::array<std::string_view, 2> trailing_slash_list{"same", "distinct"};
constexpr std::array<std::string_view, 2> count_list{"admissions", "attempts"};
constexpr std::array<std::string_view, 5> header_family_list{
    "none", "ratelimit_remaining_on_refusal", "x_ratelimit", "ietf_draft_10", "ietf_draft_03"};
constexpr std::array<std::string_view, 3> store_down_list{"open", "closed", "local"};
constexpr std::array<std::string_view, 5> limit_kind_list{
    "token_bucket", "fixed_window", "sliding_window", "sliding_counter", "concurrency"};
constexpr std::array<std::string_view, 9> method_list{
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"};

constexpr std::array<std::string_view, 3> place_list{"bearer", "header", "cookie"};

constexpr std::array shared_shapes{
    SharedShape{"name", R"({"type": "string", "minLength": 1, "maxLength": 64})"},
    SharedShape{"words", R"({"anyOf": [{"type": "string"},
        {"type": "array", "items": {"type": "string"}}]})"},
    SharedShape{"status", R"({"type": "integer", "minimum": 100, "maximum": 599})"},
    SharedShape{"route_patterns", R"({"anyOf": [{"$ref": "#/$defs/words"},
        {"$ref": "#/$defs/route"}]})"},
    SharedShape{"numbers", R"({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/rate"},
        {"type": "object", "description": "Numbers by route; else: the rule's other routes.",
         "propertyNames": {"not": {"enum": ["rate", "burst", "limit", "every", "count"]}},
         "additionalProperties": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/rate"}]}}]})"},
    SharedShape{"in_flight", R"({"anyOf": [{"type": ["integer", "string"]},
        {"$ref": "#/$defs/rate"}, {"type": "object",
         "propertyNames": {"not": {"enum": ["rate", "burst", "limit", "every", "count"]}},
         "additionalProperties": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/rate"}]}}]})"},
    SharedShape{"objects", R"({"type": "object", "additionalProperties":
        {"type": "string", "pattern": "^(body|path)\\."}})"},
    SharedShape{"body", R"({"type": ["object", "array", "string", "null", "number", "boolean"]})"},
};

}  // namespace

const KeyTable policy_keys{"policy", "a policy", policy_table};
const KeyTable route_keys{"route", "a route", route_table};
const KeyTable cors_keys{"cors", "cors", cors_table};
const KeyTable identify_keys{"identify", "identify", identify_table};
const KeyTable address_keys{"address", "address", address_table};
const KeyTable credential_keys{"credential", "a kind of credential", credential_table, place_list};
const KeyTable limit_keys{"limit", "a limit", limit_table, limit_kind_list};
const KeyTable rate_keys{"rate", "a limit's numbers", rate_table};
const KeyTable cost_keys{"cost", "a cost", cost_table};
const KeyTable cost_source_keys{"cost_source", "the source of a cost", cost_source_table};
const KeyTable store_down_keys{"store_down_by_environment", "store_down", store_down_table};
const KeyTable refusal_keys{"refusal", "an answer", refusal_table};

const KeyTable issue_keys{"issue", "what is issued", issue_table};
const KeyTable issued_number_keys{"issued_number", "an issued number", issued_number_table};
const KeyTable strike_keys{"strike", "a strike rule", strike_table};
const KeyTable block_keys{"block", "a block", block_table};
const KeyTable ceiling_keys{"ceiling", "a ceiling", ceiling_table};
const KeyTable quota_keys{"quota", "a quota", quota_table};
const KeyTable idempotency_keys{"idempotency_rule", "an idempotency rule", idempotency_table};

const KeyTable probe_keys{"probe", "a probe", probe_table};

const WordList compare_words{"compare", compare_list};
const WordList doubt_words{"doubt", doubt_list};
const WordList unmatched_words{"unmatched", unmatched_list};
const WordList trailing_slash_words{"trailing_slash", trailing_slash_list};
const WordList count_words{"count", count_list};
const WordList header_family_words{"header_family", header_family_list};
const WordList store_down_words{"store_down", store_down_list};
const WordList limit_kind_words{"limit_kind", limit_kind_list};
const WordList method_words{"method", method_list};

std::span<const KeyTable* const> all_key_tables() {
    static constexpr std::array tables{
        &policy_keys,     &route_keys,   &cors_keys,   &identify_keys,    &address_keys,
        &credential_keys, &limit_keys,   &rate_keys,   &cost_keys,        &cost_source_keys,
        &store_down_keys, &refusal_keys, &strike_keys, &issue_keys,       &issued_number_keys,
        &block_keys,      &ceiling_keys, &quota_keys,  &idempotency_keys, &probe_keys};
    return tables;
}

std::span<const WordList* const> all_word_lists() {
    static constexpr std::array lists{&unmatched_words,     &trailing_slash_words, &count_words,
                                      &header_family_words, &store_down_words,     &compare_words,
                                      &doubt_words};
    return lists;
}

std::span<const SharedShape> all_shared_shapes() {
    return shared_shapes;
}

}  // namespace ration
