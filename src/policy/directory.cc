#include "policy/directory.h"

#include <sodium.h>

#include "absl/hash/hash.h"
#include "policy/directory_reader.h"
#include "policy/yaml_source.h"

namespace ration {
namespace {

absl::string_view key_view(std::string_view text) {
    return {text.data(), text.size()};
}

}  // namespace

std::size_t SecretHash::operator()(absl::string_view secret) const {
    return absl::Hash<absl::string_view>()(secret);
}

bool SecretEqual::operator()(absl::string_view a, absl::string_view b) const {
    return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool Directory::has_kind(std::string_view kind) const {
    return entities_.contains(key_view(kind));
}

std::vector<std::string_view> Directory::kinds() const {
    std::vector<std::string_view> names;
    for (const auto& [kind, entities] : entities_) {
        names.emplace_back(kind);
    }
    return names;
}

bool Directory::has_attribute(std::string_view name) const {
    for (const auto& [secret, credential] : credentials_) {
        if (credential->self.find(name) != nullptr) {
            return true;
        }
    }
    for (const auto& [kind, entities] : entities_) {
        for (const auto& [id, entity] : entities) {
            if (entity->find(name) != nullptr) {
                return true;
            }
        }
    }
    return false;
}

const AttributeValue* Entity::find(std::string_view name) const {
    for (const auto& [attribute, value] : attributes) {
        if (attribute == name) {
            return &value;
        }
    }
    return nullptr;
}

const Entity* Credential::entity(std::string_view wanted) const {
    for (const auto& [entity_kind, reached] : entities) {
        if (entity_kind == wanted) {
            return reached;
        }
    }
    return nullptr;
}

const Credential* Directory::find(std::string_view kind, std::string_view secret) const {
    const auto found = credentials_.find(key_view(secret));
    return found != credentials_.end() && found->second->kind == kind ? found->second.get()
                                                                      : nullptr;
}

const Entity* Directory::entity(std::string_view kind, std::string_view id) const {
    const auto of_kind = entities_.find(key_view(kind));
    if (of_kind == entities_.end()) {
        return nullptr;
    }
    const auto found = of_kind->second.find(key_view(id));
    return found != of_kind->second.end() ? found->second.get() : nullptr;
}

std::shared_ptr<const Directory> Directory::parse(std::string_view file, std::string_view text,
                                                  Problems& problems) {
    const Problems::Mark before = problems.mark();
    const auto document = YamlDocument::parse(file, text, problems);
    if (document == nullptr) {
        return nullptr;
    }
    auto directory = std::make_shared<Directory>();
    Reader reader(file, problems);
    DirectoryReader(*directory, file, reader).read(document->root());
    problems.sort_from(before);
    return problems.errors().size() == before.errors ? directory : nullptr;
}

std::shared_ptr<const Directory> Directory::load(const std::string& path, Problems& problems) {
    std::string text;
    if (!read_file(path, text, problems)) {
        return nullptr;
    }
    return parse(path, text, problems);
}

}  // namespace ration
