// A policy: the whole validated rule set of one API, immutable, swapped as one.
//
// `Policy::parse` turns the YAML language (docs/policy.md) into this; everything a request needs is
// resolved to indices here, so that deciding compares no names. Thread rule: const, share freely.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "limits/calendar.h"
#include "policy/problems.h"
#include "policy/template.h"
#include "ration/counters.h"
#include "ration/ledger.h"
#include "ration/limit.h"
#include "request/address.h"
#include "request/credential.h"
#include "request/idempotency.h"
#include "wire/rate_limit_fields.h"

namespace ration {

class Directory;

// Index types: which route, credential kind, limit or refusal of the policy.
using RouteIndex = std::uint16_t;
using KindIndex = std::uint8_t;
inline constexpr RouteIndex no_route = 0xffff;

inline constexpr std::size_t max_routes = 1024;
inline constexpr std::size_t max_kinds = 30;  // declared kinds; with the two below, bits of a word
inline constexpr std::size_t max_limits = 256;
inline constexpr std::size_t max_path_parameters = 8;
inline constexpr std::size_t max_key_parts = 8;  // of one limit
inline constexpr std::size_t max_pattern_segments = 32;
inline constexpr std::size_t max_pattern_bytes = 512;
inline constexpr std::size_t max_method_bytes = 32;

// The two kinds every policy has, before its own: nothing presented, and presented but not known.
inline constexpr KindIndex kind_anonymous = 0;
inline constexpr KindIndex kind_unknown = 1;
using KindSet = std::uint32_t;  // bit k: kind k
[[nodiscard]] constexpr KindSet kind_bit(KindIndex kind) {
    return KindSet{1} << kind;
}
inline constexpr KindSet all_kinds = ~KindSet{0};

// ---- routes ----

struct Route {
    std::string name;
    Position at;
    KindSet accepts = all_kinds;
    std::vector<std::string> patterns;    // "GET /v1/things/{id}", one for each method
    std::vector<std::string> methods;     // of its patterns; "ANY" among them: every method
    std::vector<std::string> parameters;  // of its paths; those of several in no order

    [[nodiscard]] bool has_parameter(std::string_view name) const;
};

// What a path matched: the route and where its `{x}` parts stand in the path.
struct RouteMatch {
    RouteIndex route = no_route;
    std::uint8_t parameter_count = 0;
    std::array<std::string_view, max_path_parameters> names;   // views into the policy
    std::array<std::string_view, max_path_parameters> values;  // views into the path

    [[nodiscard]] std::string_view parameter(std::string_view name) const;  // empty: absent
};

// Patterns compiled to a segment tree. The most specific pattern wins whatever the order in the
// file: segment by segment a literal before `{x}` before `**`, then a named method before ANY.
// HEAD matches what GET matches unless a pattern of the same path names HEAD itself. `**` also
// stands for nothing: "/v1/account/**" serves "/v1/account".
class RouteTable {
public:
    struct Pattern;
    RouteTable();
    ~RouteTable();
    RouteTable(RouteTable&&) noexcept;
    RouteTable& operator=(RouteTable&&) noexcept;

    // Empty, or why the pattern ("GET /v1/x/{id}") is refused: syntax, or the same method and path
    // as an earlier one (whatever the parameters are called).
    std::string add(std::string_view pattern, RouteIndex route);
    // There are `max_routes` patterns: none can be added.
    [[nodiscard]] bool full() const { return pattern_count_ == max_routes; }
    // Whether "/a" and "/a/" are two paths; said before the first `add`.
    void set_trailing_slash_distinct(bool distinct);

    // `path` is a normal path (request/path.h). No allocation.
    [[nodiscard]] RouteMatch match(std::string_view method, std::string_view path) const;
    // True when some route has this path with another method.
    [[nodiscard]] bool path_exists(std::string_view path) const;

private:
    struct Node;
    class Walk;
    std::unique_ptr<Node> root_;
    std::size_t pattern_count_ = 0;
    bool slash_distinct_ = false;
};

// ---- credentials that are made at run time ----

inline constexpr std::size_t max_issued_numbers = 8;

// A number that an issued credential has, fixed when it is made.
struct IssuedNumber {
    std::string name;  // rate_limit_per_min
    std::int64_t least = 0;
    std::int64_t most = 0;
    std::int64_t otherwise = 0;  // when it is not said
};

// A kind of credential that operators can issue.
struct IssueRule {
    KindIndex kind = kind_unknown;
    std::string prefix;  // of its secrets: that of the kind's place
    std::string owner;   // kind of the entity it belongs to: user
    Position owner_at;
    std::vector<IssuedNumber> numbers;
    Position at;
};

// ---- limits ----

// One part of a limit's key, or where a number comes from.
struct Selector {
    enum class Source : std::uint8_t {
        route,  // the route's name; unmatched requests: the empty name
        method,
        address,     // the caller's address, cut
        credential,  // the credential itself, by its secret's digest
        entity,      // the id of the entity of kind `name` that the credential leads to
        attribute,   // attribute `path.back()` of the entity reached by `path`
        path,        // path parameter `name`
        query,       // query parameter `name`, first value, decoded
        header,      // request header `name`
        body,        // field `name` of the request's body: a JSON member or a form field
    };
    Source source = Source::route;
    std::string name;               // entity kind, parameter or header name
    std::vector<std::string> path;  // account.plan.calendars -> {account, plan, calendars}
    Position at;
};

// A word of the policy that the directory may give a meaning: an entity's kind, or a dotted
// attribute. Where it stands, for `check_words`.
struct EntityWord {
    std::vector<std::string> steps;  // {workspace}; {account, plan, calendars}
    bool attribute = false;          // the last step is one, not a kind
    Position at;                     // of the first step
};

// A limit's numbers for one request: a fixed limit, one per route, or made from an attribute.
struct Numbers {
    std::optional<LimitRef> fixed;
    std::vector<std::pair<RouteIndex, LimitRef>> by_route;  // routes that have their own numbers
    std::optional<Selector> attribute;  // amount and capacity come from here; `shape` has the rest
    Limit shape;
};

// What one request takes. `header`/`by_route` fall back to `fixed`.
struct Cost {
    std::uint32_t fixed = 1;
    std::vector<std::pair<RouteIndex, std::uint32_t>> by_route;
    std::string request_header;   // cost stated by the request; not a number: `fixed`
    std::string response_header;  // true cost, settled afterwards against what was taken
};

enum class StoreDown : std::uint8_t { open, closed, local };

// What a limit is to a strike rule, which is made of two of them (see StrikeRule).
enum class StrikePart : std::uint8_t { none, block, attempts };

struct LimitRule {
    std::string name;
    Position at;
    std::vector<bool> routes;  // by RouteIndex; empty: every route
    bool unmatched = true;     // requests that match no route too (no `routes`, or `except_routes`)
    std::vector<std::string> methods;  // empty: every method
    KindSet kinds = all_kinds;
    std::vector<Selector> key;
    Numbers numbers;
    Cost cost;
    HeaderFamily headers = HeaderFamily::none;
    std::uint16_t refusal = 0;  // index into Policy::refusals
    StoreDown store_down = StoreDown::open;
    bool shadow = false;  // decide and report, don't enforce
    StrikePart part = StrikePart::none;
    std::uint16_t strike = 0;  // index into Policy::strikes, when it is a part

    [[nodiscard]] bool covers(RouteIndex route) const {
        if (route == no_route) {
            return unmatched;
        }
        return routes.empty() || routes[route];
    }
};

// ---- strikes ----

inline constexpr std::size_t max_strikes = 32;
inline constexpr std::size_t max_block_levels = 14;  // all of them are looked at in one transaction
inline constexpr std::size_t max_strike_name_bytes = 48;  // leaves room for what is made from it
inline constexpr std::size_t max_failed_statuses = 16;
inline constexpr Nanos max_block = std::chrono::hours(24) * 365;
// A body that a limit counts by is read whole before the request is judged; a larger one is 413.
inline constexpr std::size_t max_read_body_bytes = 64U << 10;

// Counted failures that lead to a timed, growing block. Everything is kept in counters by limits:
//   block      a bucket of one second per unit; a block of 600 s is 600 units, empty is free
//   attempts   the window of the threshold: a place for each failure and each attempt under way
//   failures   the same window, counting failures alone
//   memory     for each level a bucket like `block`, in use as long as the level is remembered
struct StrikeRule {
    std::string name;
    Position at;
    std::uint16_t block = 0;     // index into Policy::limits
    std::uint16_t attempts = 0;  // index into Policy::limits
    std::string failures_name;   // identity of the count of failures
    LimitRef failures;           // its amount is the threshold

    struct BlockLevel {
        std::string name;            // identity of its memory
        std::uint32_t seconds = 0;   // how long the block lasts
        std::uint32_t remember = 0;  // seconds from its beginning until the level is forgotten
        LimitRef memory;             // holds `remember` units
    };
    std::vector<BlockLevel> levels;     // a block repeated before it is forgotten has the next one
    std::vector<std::uint16_t> failed;  // statuses that are failures
    bool cleared_by_success = false;    // a 2xx or 3xx forgets the failures

    [[nodiscard]] bool fails(int status) const;
};

// ---- ceilings, quotas, idempotency: kept by the ledger ----

inline constexpr std::size_t max_durable_rules = 64;          // of each kind
inline constexpr std::size_t max_kept_body_bytes = 8U << 20;  // bound of `max_body`, `max_answer`

// Which requests a durable rule speaks about, and what its count is kept by.
struct DurableScope {
    std::string name;
    Position at;
    std::vector<bool> routes;  // by RouteIndex; never empty
    KindSet kinds = all_kinds;
    std::vector<Selector> key;

    [[nodiscard]] bool covers(RouteIndex route, KindIndex kind) const {
        return route != no_route && routes[route] && (kinds & kind_bit(kind)) != 0;
    }
};

// How much at most: a whole number, or an attribute of the subject.
struct AtMost {
    std::uint64_t fixed = 0;
    std::vector<std::string> attribute;  // {account, booking_volume}; empty: `fixed`
};

// A count of things actually written (2xx answers of the upstream).
struct CeilingRule : DurableScope {
    AtMost at_most;
    CeilingKind kind = CeilingKind::local_day;
    std::vector<std::string> zone_attribute;    // {workspace, timezone}; empty: `zone`
    std::string zone;                           // an IANA name; billing_period: or none
    PeriodLength length = PeriodLength::month;  // billing_period
    std::vector<std::string> anchor_attribute;  // {account, billing_anchor}
    std::uint16_t refusal = 0;
};

// Where an object's id stands: a member of the JSON answer, or a path parameter.
struct ObjectId {
    RouteIndex route = no_route;
    bool in_body = false;
    std::string name;  // {"id": ...} of the answer's top level, or the parameter's name
};

// A plan's cap on how many live things there are.
struct QuotaRule : DurableScope {  // routes: those of `up`
    AtMost at_most;
    std::vector<ObjectId> up;
    std::vector<ObjectId> down;
    std::uint16_t refusal = 0;
    std::vector<std::pair<KindIndex, std::uint16_t>> refusal_by_kind;  // instead, for these kinds

    [[nodiscard]] std::uint16_t refusal_for(KindIndex kind) const;
};

// How the upstream is asked what became of a key: a GET that answers 2xx with what the first
// request was answered, or would have been, and 404 or 410 when there is no such thing.
struct ProbeRule {
    // The target, in pieces: literal text, each followed by the hole of the same index.
    std::vector<std::string> texts;
    std::vector<std::string> holes;  // "key", or a path parameter; one less than `texts`
    int status = 0;                  // of the replay; 0: the probe's own
};

struct IdempotencyRule : DurableScope {  // key: the scope
    std::string header = "Idempotency-Key";
    bool required = false;  // 400 without it
    Nanos keep = std::chrono::hours(24);
    DoubtRule doubt = DoubtRule::forward;
    ProbeRule probe;  // with DoubtRule::probe
    BodyComparison comparison = BodyComparison::by_value;
    std::size_t max_body = 1U << 20;    // request; a larger one is 413
    std::size_t max_answer = 1U << 20;  // a larger one passes and is not kept
};

// ---- answers ----

struct Refusal {
    std::string name;
    int status = 429;
    std::vector<std::pair<std::string, Template>> headers;
    Template body;
    std::string content_type = "application/json";
    std::string type;     // what {type} stands for: the refusal's name unless the policy says else
    std::string message;  // what {message} stands for, unless there is a better reason to tell
};

// The answers ration gives without a limit's refusing; each is a Refusal of the policy, in the
// policy's error shape, and can be written out in `refusals:` under the name in parentheses.
enum class BuiltIn : std::uint8_t {
    bad_request,                    // 400 (bad_request)
    unauthorized,                   // 401 (unauthorized)
    forbidden,                      // 403 (forbidden)
    not_found,                      // 404 (not_found)
    request_timeout,                // 408 (request_timeout)
    payload_too_large,              // 413 (payload_too_large)
    uri_too_long,                   // 414 (uri_too_long)
    headers_too_large,              // 431 (headers_too_large)
    expectation_failed,             // 417 (expectation_failed)
    upgrade_refused,                // 501 (upgrade_refused)
    bad_gateway,                    // 502 (bad_gateway)
    unavailable,                    // 503 (unavailable): draining or overloaded
    store_unavailable,              // 503 (rate_limiter_unavailable): counters down, limit closed
    gateway_timeout,                // 504 (gateway_timeout)
    internal_error,                 // 500 (internal_error)
    idempotency_mismatch,           // 422
    idempotency_in_progress,        // 409
    idempotency_in_doubt,           // 409
    idempotency_response_not_kept,  // 409
    contention,                     // 503: two writes contended, Retry-After: 1
    ledger_unavailable,             // 503: the durable store gives no answer
    count,
};

// ---- CORS ----

struct Cors {
    bool enabled = false;
    bool any_origin = false;
    std::vector<std::string> origins;
    std::vector<std::string> expose;
    std::vector<std::string> methods;  // empty: the one asked for
    std::vector<std::string> headers;  // empty: those asked for
    bool credentials = false;
    std::int32_t max_age_seconds = 600;
};

class Policy {
public:
    std::string name;
    std::string file;
    bool forward_unmatched = false;
    std::vector<Route> routes;
    RouteTable table;
    Cors cors;
    AddressRules address;
    std::vector<CredentialRule> credentials;
    std::vector<std::string> kinds;  // by KindIndex: "anonymous", "unknown", then declared ones
    std::vector<KindIndex> kind_of_rule;  // by index of `credentials`
    KindSet accepts_unmatched = all_kinds;
    // Kinds whose unrecognised secret counts as nothing presented (cookies: an unknown session).
    KindSet unknown_is_anonymous = 0;
    std::vector<IssueRule> issues;
    // Entities that come from the request: {"team", path.teamId}.
    std::vector<std::pair<std::string, Selector>> bound_entities;
    std::vector<EntityWord> entity_words;  // in no order
    std::vector<LimitRule> limits;
    std::vector<StrikeRule> strikes;
    std::vector<bool> body_routes;      // by RouteIndex: some rule counts by a field of the body
    std::vector<CeilingRule> ceilings;  // in the order in which they are judged and reported
    std::vector<QuotaRule> quotas;
    std::vector<IdempotencyRule> idempotency;
    std::vector<bool> durable_routes;  // by RouteIndex: some rule of the three speaks about it
    std::vector<Refusal> refusals;
    std::array<std::uint16_t, static_cast<std::size_t>(BuiltIn::count)> built_in{};

    // nullptr when `problems` got an error. `environment` answers `env.NAME`. `directory` is the
    // one that the policy is read for: what `check_words` finds is then told beside everything
    // else, and an error like it. nullptr: that is left to the caller.
    using Environment = const char* (*)(const char* name);
    static std::shared_ptr<const Policy> parse(std::string_view file, std::string_view text,
                                               Environment environment, Problems& problems,
                                               const Directory* directory = nullptr);
    static std::shared_ptr<const Policy> load(const std::string& path, Environment environment,
                                              Problems& problems,
                                              const Directory* directory = nullptr);

    [[nodiscard]] bool needs_ledger() const {
        return !ceilings.empty() || !quotas.empty() || !idempotency.empty();
    }
    [[nodiscard]] const Refusal& answer(BuiltIn which) const {
        return refusals[built_in[static_cast<std::size_t>(which)]];
    }
};

}  // namespace ration
