// The words of the policy language: every mapping's keys and every closed list of words, once.
//
// The parser refuses what is not here and the JSON Schema is made from the same tables, so the two
// cannot disagree. A key that is known but not offered by this build carries the reason in
// `refused` and is left out of the schema.
#pragma once

#include <span>
#include <string_view>

namespace ration {

struct Key {
    std::string_view name;
    std::string_view schema;   // JSON Schema of the value, as JSON text
    std::string_view meaning;  // one sentence for editors
    bool required = false;
    std::string_view refused = {};
};

struct KeyTable {
    std::string_view name;  // of the definition in the schema
    std::string_view what;  // "a limit": for messages
    std::span<const Key> keys;
    std::span<const std::string_view> exactly_one = {};  // of these keys, one is there
};

extern const KeyTable policy_keys;
extern const KeyTable route_keys;
extern const KeyTable cors_keys;
extern const KeyTable identify_keys;
extern const KeyTable address_keys;
extern const KeyTable credential_keys;
extern const KeyTable limit_keys;
extern const KeyTable rate_keys;
extern const KeyTable cost_keys;
extern const KeyTable cost_source_keys;
extern const KeyTable store_down_keys;
extern const KeyTable refusal_keys;
extern const KeyTable issue_keys;
extern const KeyTable issued_number_keys;
extern const KeyTable strike_keys;
extern const KeyTable block_keys;
extern const KeyTable ceiling_keys;
extern const KeyTable quota_keys;
extern const KeyTable idempotency_keys;
extern const KeyTable probe_keys;

[[nodiscard]] std::span<const KeyTable* const> all_key_tables();

// Values that are one word of a closed list. The order is that of the enumeration they stand for.
struct WordList {
    std::string_view name;
    std::span<const std::string_view> words;
};

extern const WordList compare_words;         // BodyComparison
extern const WordList doubt_words;           // DoubtRule
extern const WordList unmatched_words;       // refuse, forward
extern const WordList trailing_slash_words;  // same, distinct
extern const WordList count_words;           // admissions, attempts
extern const WordList header_family_words;   // HeaderFamily
extern const WordList store_down_words;      // StoreDown
extern const WordList limit_kind_words;      // LimitKind: keys of a limit
extern const WordList method_words;          // methods that a rule may name

[[nodiscard]] std::span<const WordList* const> all_word_lists();

// Other shapes of values that several keys share: name and JSON Schema text.
struct SharedShape {
    std::string_view name;
    std::string_view schema;
};
[[nodiscard]] std::span<const SharedShape> all_shared_shapes();

}  // namespace ration
