#include "policy/issued.h"

#include "policy/directory_reader.h"

namespace ration {

namespace {

// Owns the entity that the directory does not have.
struct OwnedCredential : Credential {
    Entity owner;
};

// Breadth first, as in the directory: of two entities of one kind the nearer is kept.
void add_reached(Credential& credential, const Entity& from, const Directory& directory) {
    for (const auto& [name, value] : from.attributes) {
        const auto* id = std::get_if<std::string>(&value);
        if (id == nullptr || credential.entity(name) != nullptr) {
            continue;
        }
        if (const Entity* reached = directory.entity(name, *id)) {
            credential.entities.emplace_back(name, reached);
        }
    }
}

}  // namespace

std::shared_ptr<const Credential> credential_of(const IssuedToken& token,
                                                const Directory& directory) {
    const Entity* owner = directory.entity(token.owner_kind, token.owner);
    if (owner == nullptr && directory.has_kind(token.owner_kind)) {
        return nullptr;
    }
    auto credential = std::make_shared<OwnedCredential>();
    credential->kind = token.kind;
    credential->fingerprint = hex_digits(token.digest, fingerprint_digits);
    credential->key = hex_digits(token.digest, credential_key_digits);
    credential->self.kind = "credential";
    credential->self.id = credential->fingerprint;
    credential->self.attributes.emplace_back(token.owner_kind, token.owner);
    for (const auto& [name, number] : token.numbers) {
        credential->self.attributes.emplace_back(name, number);
    }
    if (owner == nullptr) {
        credential->owner.kind = token.owner_kind;
        credential->owner.id = token.owner;
        owner = &credential->owner;
    }
    credential->entities.emplace_back(token.owner_kind, owner);
    for (std::size_t i = 0; i < credential->entities.size(); ++i) {
        add_reached(*credential, *credential->entities[i].second, directory);
    }
    return credential;
}

}  // namespace ration
