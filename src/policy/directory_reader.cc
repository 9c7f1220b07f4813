// Problem: which attribute is a reference (workspace: ws_1) and which is plain text (timezone) is
// not said in the file. Idea: a kind that has a section under `entities` is always a reference and
// must exist; the well-known kinds, and any text attribute of a credential, name an entity even
// without a section, which then exists with that id and nothing more. Entities are all read before
// anything is looked up, so the order in the file does not matter.
#include "policy/directory_reader.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "base/text.h"

namespace ration {
namespace {

// Text about a credential that names nothing.
constexpr std::array<std::string_view, 9> plain_attributes{
    "name",           "label",   "note",    "description", "timezone",
    "billing_anchor", "created", "expires", "email"};
constexpr std::array<std::string_view, 3> count_attributes{"booking_volume", "calendars",
                                                           "workspaces"};
constexpr std::array<std::string_view, 2> token_kinds{"personal_token", "team_key"};
constexpr std::array<std::string_view, 4> request_words{"route", "method", "address", "credential"};

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

absl::string_view key_view(std::string_view text) {
    return {text.data(), text.size()};
}

bool is_id(std::string_view text) {
    return !text.empty() && text.size() <= max_id_bytes &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c != 0x7f; });
}

constexpr std::array directory_table{
    Key{"entities", "", ""},
    Key{"credentials", "", ""},
};
const KeyTable directory_keys{"directory", "a directory", directory_table};

}  // namespace

SecretDigest digest_of(std::string_view secret) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> whole{};
    EVP_Digest(secret.data(), secret.size(), whole.data(), nullptr, EVP_sha256(), nullptr);
    SecretDigest digest;
    std::copy_n(whole.begin(), digest.size(), digest.begin());
    return digest;
}

std::string hex_digits(const SecretDigest& digest, std::size_t count) {
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest.data()), count / 2));
}

std::string secret_fingerprint(std::string_view secret) {
    return hex_digits(digest_of(secret), fingerprint_digits);
}

void DirectoryReader::read(const YamlNode& root) {
    if (!reader_.mapping(root, directory_keys)) {
        return;
    }
    const YamlNode* entities = root.find("entities");
    if (entities != nullptr && entities->kind != YamlNode::Kind::null) {
        read_entities(*entities);
    }
    const YamlNode* credentials = root.find("credentials");
    if (credentials != nullptr && credentials->kind != YamlNode::Kind::null) {
        read_credentials(*credentials);
    }
}

void DirectoryReader::read_entities(const YamlNode& node) {
    if (!reader_.any_mapping(node, "entities")) {
        return;
    }
    if (node.entries.size() > max_entity_kinds) {
        reader_.error(node.at, cat("more than ", max_entity_kinds, " kinds of entities"));
        return;
    }
    for (const YamlNode::Entry& kind : node.entries) {
        read_kind(kind);
    }
    for (const YamlNode::Entry& kind : node.entries) {
        for (const YamlNode::Entry& entity : kind.value->entries) {
            Entity* owner = find(kind.key->scalar, entity.key->scalar);
            if (owner != nullptr) {
                check_references(*entity.value, *owner);
            }
        }
    }
}

void DirectoryReader::read_kind(const YamlNode::Entry& entry) {
    const std::string& kind = entry.key->scalar;
    if (!is_identifier(kind) || is_one_of(kind, request_words)) {
        reader_.error(entry.key->at,
                      "a kind of entity is one word, and none of route, method, address, "
                      "credential");
        return;
    }
    written_kinds_.emplace(kind, entry.key->at);
    if (entry.value->kind == YamlNode::Kind::null ||
        !reader_.any_mapping(*entry.value, "the entities of a kind")) {
        return;
    }
    for (const YamlNode::Entry& one : entry.value->entries) {
        if (!is_id(one.key->scalar)) {
            reader_.error(one.key->at,
                          cat("an id is 1 to ", max_id_bytes, " characters without blanks"));
            continue;
        }
        auto entity = std::make_unique<Entity>();
        entity->kind = kind;
        entity->id = one.key->scalar;
        entity->at = one.key->at;
        read_attributes(*one.value, *entity);
        directory_.entities_[kind].emplace(one.key->scalar, std::move(entity));
        ++directory_.entity_count_;
    }
}

void DirectoryReader::read_attributes(const YamlNode& node, Entity& owner) {
    if (node.kind == YamlNode::Kind::null) {
        return;
    }
    if (!reader_.any_mapping(node, "what is known of one")) {
        return;
    }
    if (node.entries.size() > max_attributes) {
        reader_.error(node.at, cat("more than ", max_attributes, " attributes"));
        return;
    }
    const bool of_credential = owner.kind == "credential";
    for (const YamlNode::Entry& entry : node.entries) {
        const std::string& name = entry.key->scalar;
        if (of_credential && name == "kind") {
            continue;
        }
        if (!is_identifier(name)) {
            reader_.error(entry.key->at, "an attribute's name is letters, digits, '_' and '-'");
            continue;
        }
        if (const auto value = read_value(name, *entry.value)) {
            check_known(name, *entry.value, of_credential);
            owner.attributes.emplace_back(name, *value);
        }
    }
}

std::optional<AttributeValue> DirectoryReader::read_value(std::string_view name,
                                                          const YamlNode& node) {
    if (!node.is_scalar()) {
        reader_.error(node.at, cat("'", name, "' is text, a whole number, true or false, not ",
                                   node.kind_name()));
        return std::nullopt;
    }
    if (node.scalar.size() > max_attribute_bytes) {
        reader_.error(node.at, cat("longer than ", max_attribute_bytes, " bytes"));
        return std::nullopt;
    }
    if (node.quoted || is_one_of(name, well_known_kinds) ||
        written_kinds_.contains(key_view(name))) {
        return AttributeValue(node.scalar);
    }
    if (node.scalar == "true" || node.scalar == "false") {
        return AttributeValue(node.scalar == "true");
    }
    std::string_view digits = node.scalar;
    const bool negative = digits.starts_with('-') && digits.size() > 1;
    digits.remove_prefix(negative ? 1 : 0);
    if (digits.find_first_not_of("0123456789") == std::string_view::npos) {
        const auto number = parse_whole(digits);
        if (!number.has_value() || *number > std::uint64_t{INT64_MAX}) {
            reader_.error(node.at, "the number is too large");
            return std::nullopt;
        }
        const auto value = static_cast<std::int64_t>(*number);
        return AttributeValue(negative ? -value : value);
    }
    if (digits.find_first_not_of("0123456789.") == std::string_view::npos &&
        digits.find('.') == digits.rfind('.')) {
        reader_.error(node.at, "not a whole number; in quotes it would be text");
        return std::nullopt;
    }
    return AttributeValue(node.scalar);
}

// Attributes whose meaning ration knows are checked where they stand.
void DirectoryReader::check_known(std::string_view name, const YamlNode& node, bool of_credential) {
    if (name == "timezone") {
        absl::TimeZone zone;
        if (!absl::LoadTimeZone(node.scalar, &zone)) {
            reader_.error(node.at,
                          "not a time zone of the IANA database, such as America/New_York");
        }
    } else if (name == "billing_anchor") {
        absl::Time time;
        std::string error;
        if (!absl::ParseTime(absl::RFC3339_full, node.scalar, &time, &error) ||
            time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
            reader_.error(node.at, "not a time such as \"2026-01-31T00:00:00Z\" (RFC 3339)");
        }
    } else if (is_one_of(name, count_attributes)) {
        const auto number = node.quoted ? std::nullopt : parse_whole(node.scalar);
        if (!number.has_value() || *number > std::uint64_t{INT64_MAX}) {
            reader_.error(node.at, cat("'", name, "' is a whole number, 0 or more"));
        }
    } else if (name == "rate_limit_per_min" && of_credential) {
        const auto number = node.quoted ? std::nullopt : parse_whole(node.scalar);
        if (!number.has_value() || *number < 1 || *number > std::uint64_t{max_rate_limit_per_min}) {
            reader_.error(node.at, cat("'rate_limit_per_min' is a whole number from 1 to ",
                                       max_rate_limit_per_min));
        }
    }
}

bool DirectoryReader::names_entity(std::string_view attribute, bool of_credential) const {
    return written_kinds_.contains(key_view(attribute)) || is_one_of(attribute, well_known_kinds) ||
           (of_credential && !is_one_of(attribute, plain_attributes) &&
            !is_one_of(attribute, request_words));
}

void DirectoryReader::check_references(const YamlNode& node, Entity& owner) {
    for (const YamlNode::Entry& entry : node.entries) {
        const std::string& name = entry.key->scalar;
        const AttributeValue* value = owner.find(name);
        const auto* id = value != nullptr ? std::get_if<std::string>(value) : nullptr;
        if (id == nullptr || !names_entity(name, owner.kind == "credential")) {
            continue;
        }
        if (find(name, *id) != nullptr) {
            continue;
        }
        if (written_kinds_.contains(key_view(name))) {
            std::vector<std::string_view> known;
            for (const auto& [known_id, entity] : directory_.entities_[name]) {
                if (reader_.full() || known.size() == max_known_words) {
                    break;
                }
                known.push_back(known_id);
            }
            reader_.unknown(entry.value->at, name, *id, known);
            continue;
        }
        if (!is_id(*id)) {
            if (is_one_of(name, well_known_kinds)) {
                reader_.error(entry.value->at,
                              cat("an id is 1 to ", max_id_bytes, " characters without blanks"));
            }
            continue;
        }
        auto implicit = std::make_unique<Entity>();
        implicit->kind = name;
        implicit->id = *id;
        implicit->at = entry.value->at;
        directory_.entities_[name].emplace(*id, std::move(implicit));
        ++directory_.entity_count_;
    }
}

Entity* DirectoryReader::find(std::string_view kind, std::string_view id) {
    const auto of_kind = directory_.entities_.find(key_view(kind));
    if (of_kind == directory_.entities_.end()) {
        return nullptr;
    }
    const auto found = of_kind->second.find(key_view(id));
    return found != of_kind->second.end() ? found->second.get() : nullptr;
}

void DirectoryReader::read_credentials(const YamlNode& node) {
    if (!reader_.any_mapping(node, "credentials")) {
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        read_credential(entry);
    }
}

void DirectoryReader::read_credential(const YamlNode::Entry& entry) {
    const std::string& secret = entry.key->scalar;
    if (secret.empty() || secret.size() > max_secret_bytes ||
        std::any_of(secret.begin(), secret.end(), [](char c) { return c <= 0x20 || c >= 0x7f; })) {
        reader_.error(entry.key->at, cat("a secret is 1 to ", max_secret_bytes,
                                         " printable ASCII characters without blanks"));
        return;
    }
    if (!reader_.any_mapping(*entry.value, "a credential")) {
        return;
    }
    const YamlNode* kind = entry.value->find("kind");
    if (kind == nullptr) {
        reader_.error(entry.value->at, "a credential needs 'kind'");
        return;
    }
    auto credential = std::make_unique<Credential>();
    credential->kind = reader_.text(*kind, "a credential's kind").value_or("");
    if (!is_identifier(credential->kind)) {
        reader_.error(kind->at, "a kind's name is letters, digits, '_' and '-', at most 64");
        return;
    }
    const SecretDigest digest = digest_of(secret);
    credential->fingerprint = hex_digits(digest, fingerprint_digits);
    credential->key = hex_digits(digest, credential_key_digits);
    credential->self.kind = "credential";
    credential->self.id = credential->fingerprint;
    credential->self.at = entry.key->at;
    read_attributes(*entry.value, credential->self);
    check_references(*entry.value, credential->self);
    if (is_one_of(credential->kind, token_kinds) &&
        credential->self.find("rate_limit_per_min") == nullptr) {
        credential->self.attributes.emplace_back("rate_limit_per_min", default_rate_limit_per_min);
    }
    close(*credential);
    directory_.credentials_.emplace(secret, std::move(credential));
}

// Breadth first, so that of two entities of one kind the nearer is kept.
void DirectoryReader::close(Credential& credential) {
    add_reached(credential, credential.self);
    for (std::size_t i = 0; i < credential.entities.size(); ++i) {
        add_reached(credential, *credential.entities[i].second);
    }
}

void DirectoryReader::add_reached(Credential& credential, const Entity& from) {
    for (const auto& [name, value] : from.attributes) {
        const auto* id = std::get_if<std::string>(&value);
        if (id == nullptr || !names_entity(name, from.kind == "credential") ||
            credential.entity(name) != nullptr) {
            continue;
        }
        if (const Entity* reached = find(name, *id)) {
            credential.entities.emplace_back(name, reached);
        }
    }
}

}  // namespace ration
