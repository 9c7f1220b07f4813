// Reads a directory file: entities by kind and id, credentials by secret.
//
// One use, one thread. A credential's secret never enters a message: problems show its position.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "policy/directory.h"
#include "policy/reader.h"
#include "ration/ledger.h"

namespace ration {

inline constexpr std::size_t max_attributes = 64;  // of one entity or credential
inline constexpr std::size_t max_secret_bytes = 512;
inline constexpr std::size_t max_id_bytes = 128;
inline constexpr std::size_t max_attribute_bytes = 1024;
inline constexpr std::size_t max_entity_kinds = 64;

// What a personal token or team key may call per minute when nothing is said, and at most.
inline constexpr std::int64_t default_rate_limit_per_min = 60;
inline constexpr std::int64_t max_rate_limit_per_min = 1000;

class DirectoryReader {
public:
    DirectoryReader(Directory& directory, std::string_view file, Reader& reader)
        : directory_(directory), reader_(reader) {
        directory_.file_ = std::string(file);
    }

    void read(const YamlNode& root);

private:
    void read_entities(const YamlNode& node);
    void read_kind(const YamlNode::Entry& entry);
    void read_credentials(const YamlNode& node);
    void read_credential(const YamlNode::Entry& entry);
    void read_attributes(const YamlNode& node, Entity& owner);
    std::optional<AttributeValue> read_value(std::string_view name, const YamlNode& node);
    void check_known(std::string_view name, const YamlNode& node, bool of_credential);
    // Reports references to entities that are not there; makes the implicit ones.
    void check_references(const YamlNode& node, Entity& owner);
    [[nodiscard]] bool names_entity(std::string_view attribute, bool of_credential) const;
    void close(Credential& credential);
    void add_reached(Credential& credential, const Entity& from);
    Entity* find(std::string_view kind, std::string_view id);

    Directory& directory_;
    Reader& reader_;
    absl::flat_hash_map<std::string, Position> written_kinds_;  // kinds with a section of their own
};

inline constexpr std::size_t fingerprint_digits = 12;
inline constexpr std::size_t credential_key_digits = 32;

[[nodiscard]] SecretDigest digest_of(std::string_view secret);
[[nodiscard]] std::string hex_digits(const SecretDigest& digest, std::size_t count);

// 12 hexadecimal digits of the secret's SHA-256: enough to tell keys apart, useless to call with.
[[nodiscard]] std::string secret_fingerprint(std::string_view secret);

}  // namespace ration
