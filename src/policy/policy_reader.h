// Reads a whole policy, section by section: names first (answers, routes, kinds), then what refers
// to them (limits), then what only shows when all is known (limits that can never apply).
//
// One use, one thread. Problems go to the Reader; the policy is complete only when it has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "policy/policy.h"
#include "policy/reader.h"

namespace ration {

inline constexpr std::size_t max_refusals = 256;
inline constexpr std::size_t max_list_items = 1024;  // of one list in the file
inline constexpr std::size_t max_patterns_per_route = 64;
inline constexpr std::size_t max_places_per_kind = 16;
inline constexpr std::size_t max_bound_entities = 16;
inline constexpr std::size_t max_refusal_headers = 32;
inline constexpr std::uint64_t max_cost = max_amount;
inline constexpr Nanos min_keep = std::chrono::minutes(1);  // of idempotency results
inline constexpr Nanos max_keep = std::chrono::hours(24 * 90);

class PolicyReader {
public:
    PolicyReader(Policy& policy, Policy::Environment environment, Reader& reader)
        : policy_(policy), environment_(environment), reader_(reader) {}

    void read(const YamlNode& root);

private:
    // A section with more than it may have. The names past the bound still count as known, and what
    // rests on the whole is not looked at, so that this error has no false ones behind it.
    void too_many(Position at, std::string reason) {
        over_bound_ = true;
        reader_.error(at, std::move(reason));
    }

    void read_head(const YamlNode& root);

    // read_routes.cc
    void read_routes(const YamlNode& node);
    void read_route(const YamlNode::Entry& entry);
    void add_patterns(const YamlNode& node, RouteIndex route);
    void note_parameters(std::string_view path, RouteIndex route);

    // read_identify.cc
    void read_identify(const YamlNode* node);
    void read_address(const YamlNode& node);
    void read_trusted(const YamlNode& node);
    void check_trust(Position at, const Cidr& network);
    void read_prefix(const YamlNode* node, std::string_view what, std::uint8_t& prefix);
    void check_address(const YamlNode& node);
    void read_kinds(const YamlNode& node);
    void read_kind(const YamlNode::Entry& entry);
    std::optional<CredentialRule> read_credential(const YamlNode& node);
    bool read_pattern(const YamlNode& node, CredentialRule& rule);
    void read_accepts(const YamlNode* node);
    void read_bound(const YamlNode& node);
    [[nodiscard]] Selector read_binding(const YamlNode& node);

    // read_issue.cc
    void read_issue(const YamlNode& node);
    void read_issue_rule(const YamlNode::Entry& entry);
    void read_issue_prefix(const YamlNode& at, IssueRule& rule);
    void read_issued_number(const YamlNode::Entry& entry, IssueRule& rule);

    std::optional<KindSet> kind_set(const YamlNode& node);
    std::optional<KindSet> kind_word(const YamlNode& node);

    // read_cors.cc
    void read_cors(const YamlNode& node);
    void read_origins(const YamlNode& node);
    void read_max_age(const YamlNode& node);
    void read_tokens(const YamlNode* node, std::string_view what, std::vector<std::string>& out);

    // read_answers.cc
    void read_answers(const YamlNode& root);
    void read_refusal(const YamlNode& key, const YamlNode& node);
    void read_refusal_headers(const YamlNode& node, Refusal& refusal);
    void read_body(const YamlNode& node, Refusal& refusal);
    std::optional<Template> read_json(const YamlNode& node);
    Template::Node json_node(const YamlNode& node);
    std::optional<std::uint16_t> refusal_named(const YamlNode& node);

    // read_limits.cc
    void read_limits(const YamlNode& node);
    void read_limit(const YamlNode& node);
    void read_limit_name(const YamlNode& node, LimitRule& rule);
    void read_scope(const YamlNode& node, LimitRule& rule);
    void read_methods(const YamlNode& node, LimitRule& rule);
    void read_key(const YamlNode& node, LimitRule& rule);
    void check_body_key(const LimitRule& rule);
    std::optional<Selector> read_selector(const YamlNode& node, std::size_t offset,
                                          std::string_view text);
    void note_word(const YamlNode& node, std::size_t offset, const Selector& selector);
    std::vector<bool> route_set(const YamlNode& node);
    std::optional<RouteIndex> route_named(const YamlNode& node);
    void read_answering(const YamlNode& node, LimitRule& rule);
    void read_store_down(const YamlNode& node, LimitRule& rule);
    void read_cost(const YamlNode& node, LimitRule& rule);
    void read_cost_source(const YamlNode* node, std::string& header);

    // read_strikes.cc
    void read_strikes(const YamlNode& node);
    void read_strike(const YamlNode& node);
    [[nodiscard]] LimitRule attempts_of(const YamlNode& node);
    [[nodiscard]] LimitRule block_of(const YamlNode& node, const LimitRule& attempts);
    void read_failed(const YamlNode& node, StrikeRule& strike);
    void read_block(const YamlNode& node, StrikeRule& strike);
    std::optional<std::uint32_t> read_seconds(const YamlNode& node, std::string_view what);
    void make_levels(const YamlNode& node, std::uint32_t first, StrikeRule& strike);
    void note_body_routes();

    // read_numbers.cc
    void read_numbers(const YamlNode& limit, LimitRule& rule);
    void read_count(const YamlNode& limit, const YamlNode& numbers, Limit& shape);
    void read_value(const YamlNode& node, const Limit& shape, Numbers& numbers, bool by_route);
    void read_rate_text(const YamlNode& node, Limit shape, Numbers& numbers, bool by_route);
    void read_rate_mapping(const YamlNode& node, Limit shape, Numbers& numbers, bool by_route);
    void read_by_route(const YamlNode& node, const Limit& shape, LimitRule& rule);
    void check_one_length(const YamlNode& node, const LimitRule& rule);
    void read_amount(const YamlNode& node, Limit shape, Numbers& numbers, bool by_route);
    void add_burst(const YamlNode* burst, const Numbers& read, Numbers& numbers);
    void set_attribute(const YamlNode& node, std::string_view text, const Limit& shape,
                       Numbers& numbers);
    void set_fixed(const YamlNode& node, const Limit& limit, Numbers& numbers);

    // read_durable.cc
    std::optional<std::vector<std::string>> attribute_path(const YamlNode& node,
                                                           std::string_view text,
                                                           std::string_view word);
    void read_durable(const YamlNode& root);
    void read_durable_scope(const YamlNode& node, std::string_view key, DurableScope& scope);
    void read_at_most(const YamlNode& node, std::string_view text, std::string_view word,
                      AtMost& at_most);
    void read_ceiling(const YamlNode& node);
    void read_ceiling_window(const YamlNode& node, CeilingRule& rule);
    void read_zone(const YamlNode& node, std::string_view text, std::string_view word,
                   CeilingRule& rule);
    void read_quota(const YamlNode& node);
    void read_objects(const YamlNode* node, std::vector<ObjectId>& objects);
    void read_refusals_by_kind(const YamlNode& node, QuotaRule& rule);
    void read_idempotency(const YamlNode& node);
    void read_probe(const YamlNode& node, IdempotencyRule& rule);
    void read_probe_path(const YamlNode& node, ProbeRule& probe);
    void read_kept_size(const YamlNode* node, std::size_t& bytes);
    void note_durable_routes();

    // reach.cc
    void check_reach();
    void check_limit_reach(const LimitRule& rule);
    void check_parameters(std::string_view what, const std::vector<Selector>& key,
                          const std::vector<bool>& routes);
    void check_all_parameters();
    void check_never_fits(const LimitRule& rule);
    void check_charges();
    void check_charges_of(RouteIndex route);
    void check_durable_of(RouteIndex route);
    void check_unused();
    [[nodiscard]] bool can_apply(const LimitRule& rule, RouteIndex route) const;

    Policy& policy_;
    Policy::Environment environment_;
    Reader& reader_;
    absl::flat_hash_map<std::string, RouteIndex> route_index_;
    std::vector<std::string_view> route_names_;
    absl::flat_hash_map<std::string, KindIndex> kind_index_;
    absl::flat_hash_set<std::string> path_parameters_;
    absl::flat_hash_map<std::string, Position> limit_names_;
    absl::flat_hash_map<std::string, std::uint16_t> refusal_index_;
    std::vector<Position> refusal_at_;  // by index; line 0: not written in the file
    std::vector<bool> refusal_used_;
    std::optional<Template> error_shape_;
    bool over_bound_ = false;
    bool all_routes_known_ = true;  // of the limit that is read: no name among them is a slip
};

}  // namespace ration
