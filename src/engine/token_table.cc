// The table is split by digest, so that threads that look up different tokens meet no common lock.
// A token is turned into a credential once per directory: the credential is kept beside it and made
// anew when a reload has brought another directory. Which one it was made from is remembered by a
// weak reference, whose identity no later directory can have.
#include "engine/token_table.h"

#include <sodium.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "base/text.h"

namespace ration {

namespace {

constexpr std::size_t id_random_bytes = 8;

struct DigestHash {
    std::size_t operator()(const SecretDigest& digest) const {
        std::size_t hash = 0;
        std::copy_n(digest.begin(), sizeof(hash), reinterpret_cast<unsigned char*>(&hash));
        return hash;
    }
};

struct DigestEqual {
    bool operator()(const SecretDigest& a, const SecretDigest& b) const {
        return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
    }
};

bool is_base64url(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

// Whether an issued secret can look like that; what cannot is not hashed.
bool has_shape(std::string_view secret) {
    if (secret.size() <= issued_random_characters) {
        return false;
    }
    const std::string_view random = secret.substr(secret.size() - issued_random_characters);
    return std::all_of(random.begin(), random.end(), is_base64url);
}

std::int64_t nanos(Wall wall) {
    return wall.time_since_epoch().count();
}

}  // namespace

NewToken make_token(std::string_view prefix, RandomBytes random) {
    std::array<std::uint8_t, issued_random_bytes + id_random_bytes> bytes{};
    random(bytes);
    const absl::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string encoded;
    absl::WebSafeBase64Escape(all.substr(0, issued_random_bytes), &encoded);
    encoded.resize(issued_random_characters);  // without the padding
    NewToken made;
    made.secret = cat(prefix, encoded);
    made.token.digest = digest_of(made.secret);
    made.token.id = cat("tok_", absl::BytesToHexString(all.substr(issued_random_bytes)));
    sodium_memzero(bytes.data(), bytes.size());
    sodium_memzero(encoded.data(), encoded.size());
    return made;
}

struct TokenTable::Entry {
    explicit Entry(IssuedToken of)
        : token(std::move(of)), last_used(nanos(token.last_used)), noted(false) {}

    // nullptr: its owner is not in that directory.
    std::shared_ptr<const Credential> of(const std::shared_ptr<const Directory>& now_in_force) {
        const std::lock_guard lock(mutex);
        const bool same = credential != nullptr && !directory.owner_before(now_in_force) &&
                          !now_in_force.owner_before(directory);
        if (!same) {
            credential = credential_of(token, *now_in_force);
            directory = now_in_force;
        }
        return credential;
    }

    const IssuedToken token;
    std::atomic<std::int64_t> last_used;
    std::atomic<bool> noted;  // it stands among those whose use is to be written down

    std::mutex mutex;
    std::weak_ptr<const Directory> directory;  // that `credential` was made from
    std::shared_ptr<const Credential> credential;
};

struct TokenTable::Shard {
    mutable std::shared_mutex mutex;
    absl::flat_hash_map<SecretDigest, std::shared_ptr<Entry>, DigestHash, DigestEqual> entries;
};

TokenTable::TokenTable(std::size_t most)
    : most_(most), shards_(std::make_unique<std::array<Shard, shard_count>>()) {}
TokenTable::~TokenTable() = default;

TokenTable::Shard& TokenTable::shard_of(const SecretDigest& digest) const {
    return (*shards_)[digest.back() % shard_count];
}

bool TokenTable::load(std::vector<IssuedToken> kept) {
    return std::all_of(kept.begin(), kept.end(),
                       [this](const IssuedToken& token) { return add(token); });
}

std::shared_ptr<const Credential> TokenTable::find(
    std::string_view kind, std::string_view secret,
    const std::shared_ptr<const Directory>& directory, Wall now) {
    if (!has_shape(secret)) {
        return nullptr;
    }
    const SecretDigest digest = digest_of(secret);
    std::shared_ptr<Entry> entry;
    {
        const Shard& shard = shard_of(digest);
        const std::shared_lock lock(shard.mutex);
        const auto found = shard.entries.find(digest);
        if (found == shard.entries.end() || found->second->token.kind != kind) {
            return nullptr;
        }
        entry = found->second;
    }
    std::shared_ptr<const Credential> credential = entry->of(directory);
    if (credential == nullptr) {
        return nullptr;
    }
    entry->last_used.store(nanos(now), std::memory_order_relaxed);
    if (!entry->noted.exchange(true, std::memory_order_relaxed)) {
        const std::lock_guard lock(uses_mutex_);
        used_.push_back(entry);
    }
    return credential;
}

std::size_t TokenTable::size() const {
    const std::lock_guard lock(ids_mutex_);
    return ids_.size();
}

bool TokenTable::add(const IssuedToken& token) {
    {
        const std::lock_guard lock(ids_mutex_);
        if (ids_.size() >= most_ || !ids_.emplace(token.id, token.digest).second) {
            return false;
        }
    }
    Shard& shard = shard_of(token.digest);
    const std::lock_guard lock(shard.mutex);
    shard.entries[token.digest] = std::make_shared<Entry>(token);
    return true;
}

bool TokenTable::remove(std::string_view id) {
    SecretDigest digest;
    {
        const std::lock_guard lock(ids_mutex_);
        const auto found = ids_.find(absl::string_view(id.data(), id.size()));
        if (found == ids_.end()) {
            return false;
        }
        digest = found->second;
        ids_.erase(found);
    }
    Shard& shard = shard_of(digest);
    const std::lock_guard lock(shard.mutex);
    shard.entries.erase(digest);
    return true;
}

std::optional<IssuedToken> TokenTable::get(std::string_view id) const {
    SecretDigest digest;
    {
        const std::lock_guard lock(ids_mutex_);
        const auto found = ids_.find(absl::string_view(id.data(), id.size()));
        if (found == ids_.end()) {
            return std::nullopt;
        }
        digest = found->second;
    }
    const Shard& shard = shard_of(digest);
    const std::shared_lock lock(shard.mutex);
    const auto found = shard.entries.find(digest);
    if (found == shard.entries.end()) {
        return std::nullopt;
    }
    IssuedToken token = found->second->token;
    token.last_used = Wall(Nanos(found->second->last_used.load(std::memory_order_relaxed)));
    return token;
}

std::vector<IssuedToken> TokenTable::list(const Filter& filter) const {
    std::vector<std::string> ids;
    {
        const std::lock_guard lock(ids_mutex_);
        for (const auto& [id, digest] : ids_) {
            if (id > filter.after) {
                ids.push_back(id);
            }
        }
    }
    std::sort(ids.begin(), ids.end());
    std::vector<IssuedToken> listed;
    for (std::size_t i = 0; i < ids.size() && listed.size() < filter.limit; ++i) {
        std::optional<IssuedToken> token = get(ids[i]);
        if (token && (filter.kind.empty() || token->kind == filter.kind) &&
            (filter.owner.empty() || token->owner == filter.owner)) {
            listed.push_back(*std::move(token));
        }
    }
    return listed;
}

std::vector<std::pair<std::string, Wall>> TokenTable::take_uses(std::size_t limit) {
    std::vector<std::shared_ptr<Entry>> taken;
    {
        const std::lock_guard lock(uses_mutex_);
        const std::size_t count = std::min(limit, used_.size());
        const auto first = used_.end() - static_cast<std::ptrdiff_t>(count);
        taken.assign(first, used_.end());
        used_.erase(first, used_.end());
    }
    std::vector<std::pair<std::string, Wall>> uses;
    for (const std::shared_ptr<Entry>& entry : taken) {
        entry->noted.store(false, std::memory_order_relaxed);
        uses.emplace_back(entry->token.id,
                          Wall(Nanos(entry->last_used.load(std::memory_order_relaxed))));
    }
    return uses;
}

}  // namespace ration
