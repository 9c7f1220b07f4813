// Credentials and entities: who a key belongs to, time zones, plans, own ceilings.
//
// Read from a YAML file (or, later, from the ledger's tables) and immutable afterwards. Thread
// rule: const, share freely. Errors carry `file:line:column: reason`, several at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "policy/problems.h"

namespace ration {

using AttributeValue = std::variant<std::int64_t, bool, std::string>;

// Kinds of entities, and attributes, that have their meaning without being declared anywhere.
inline constexpr std::array<std::string_view, 5> well_known_kinds{"workspace", "account", "user",
                                                                  "team", "plan"};
inline constexpr std::array<std::string_view, 6> well_known_attributes{
    "timezone",  "billing_anchor", "booking_volume",
    "calendars", "workspaces",     "rate_limit_per_min"};

// A thing with attributes: workspace ws_1, plan starter, ...
struct Entity {
    std::string kind;
    std::string id;
    Position at;
    std::vector<std::pair<std::string, AttributeValue>> attributes;

    [[nodiscard]] const AttributeValue* find(std::string_view name) const;
};

struct Credential {
    std::string kind;
    // Kind "credential", id = fingerprint, with its own attributes (rate_limit_per_min, ...).
    Entity self;
    // Every entity that the credential leads to, directly (workspace: ws_1) or through another
    // (that workspace's account, that account's plan), by kind; the nearest one wins.
    std::vector<std::pair<std::string, const Entity*>> entities;
    std::string fingerprint;  // 12 hexadecimal digits of the secret's SHA-256: for logs
    std::string key;          // 32 of them: what limits count a credential by

    [[nodiscard]] const Entity* entity(std::string_view kind) const;
};

// Compares secrets in a time that does not depend on where they differ.
struct SecretHash {
    using is_transparent = void;
    std::size_t operator()(absl::string_view secret) const;
};
struct SecretEqual {
    using is_transparent = void;
    bool operator()(absl::string_view a, absl::string_view b) const;
};

class Directory {
public:
    // Entities refer to one another by id; an unknown reference, a repeated key or a value of the
    // wrong type is a problem. `file` names the text in messages.
    static std::shared_ptr<const Directory> parse(std::string_view file, std::string_view text,
                                                  Problems& problems);
    static std::shared_ptr<const Directory> load(const std::string& path, Problems& problems);

    // nullptr when nobody has that secret (or it belongs to another kind).
    [[nodiscard]] const Credential* find(std::string_view kind, std::string_view secret) const;
    [[nodiscard]] const Entity* entity(std::string_view kind, std::string_view id) const;
    template <typename Visit>
    void for_each_entity(std::string_view kind, Visit visit) const {
        const auto of_kind = entities_.find(absl::string_view(kind.data(), kind.size()));
        if (of_kind != entities_.end()) {
            for (const auto& [id, entity] : of_kind->second) {
                visit(*entity);
            }
        }
    }
    // Whether the file has entities of that kind, or credentials that name some.
    [[nodiscard]] bool has_kind(std::string_view kind) const;
    // Those kinds, in no order. Views into the directory.
    [[nodiscard]] std::vector<std::string_view> kinds() const;
    // Whether some entity or credential has it. Looks at all of them.
    [[nodiscard]] bool has_attribute(std::string_view name) const;
    [[nodiscard]] const auto& credentials() const { return credentials_; }
    [[nodiscard]] std::size_t entity_count() const { return entity_count_; }
    [[nodiscard]] const std::string& file() const { return file_; }

private:
    friend class DirectoryReader;
    using EntitiesById = absl::flat_hash_map<std::string, std::unique_ptr<Entity>>;

    std::string file_;
    std::size_t entity_count_ = 0;
    absl::flat_hash_map<std::string, std::unique_ptr<Credential>, SecretHash, SecretEqual>
        credentials_;                                          // by secret
    absl::flat_hash_map<std::string, EntitiesById> entities_;  // by kind
};

}  // namespace ration
