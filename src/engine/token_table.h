// Issued tokens in memory: all that the ledger has, by the SHA-256 of their secrets.
//
// Every request with a token asks here, so nothing is read from disk for a token, known or not: a
// flood of guesses costs a hash each and touches no store. What changes goes to the store first and
// into the table when it is durable. Thread rule: any member from any thread. Bound:
// max_issued_tokens; creating another one is refused.
//
//   TokenTable table;
//   table.load(kept);                       // at start
//   auto made = table.make(rule, "u_ana", {{"rate_limit_per_min", 60}}, "ci", random, now);
//   ... store made->token ...; table.add(made->token);
//   table.find("personal_token", secret, directory, now);
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "policy/directory_reader.h"
#include "policy/issued.h"

namespace ration {

inline constexpr std::size_t max_issued_tokens = 1'000'000;

// Random bytes from outside, so that tests repeat.
using RandomBytes = void (*)(std::span<std::uint8_t> out);

struct NewToken {
    IssuedToken token;
    std::string secret;  // shown once, kept nowhere
};

// `prefix` and 32 random bytes in base64url, with its digest and an id.
[[nodiscard]] NewToken make_token(std::string_view prefix, RandomBytes random);

class TokenTable final : public IssuedCredentials {
public:
    // Holds `most` tokens; tests have smaller tables.
    explicit TokenTable(std::size_t most = max_issued_tokens);
    ~TokenTable() override;

    // Takes over what was kept; tokens beyond the bound are left out (false).
    bool load(std::vector<IssuedToken> kept);

    [[nodiscard]] std::shared_ptr<const Credential> find(
        std::string_view kind, std::string_view secret,
        const std::shared_ptr<const Directory>& directory, Wall now) override;

    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] bool full() const { return size() >= most_; }
    // False: the table is full.
    bool add(const IssuedToken& token);
    // False: there is no such token. It is nobody's from the next request on.
    bool remove(std::string_view id);
    [[nodiscard]] std::optional<IssuedToken> get(std::string_view id) const;

    // In the order of their ids, those behind `after`, at most `limit`.
    struct Filter {
        std::string kind = {};   // empty: all
        std::string owner = {};  // empty: all
        std::string after = {};
        std::size_t limit = 100;
    };
    [[nodiscard]] std::vector<IssuedToken> list(const Filter& filter) const;

    // Ids and last uses that are not written down yet, at most `limit`; they count as written then.
    [[nodiscard]] std::vector<std::pair<std::string, Wall>> take_uses(std::size_t limit);

private:
    struct Entry;
    struct Shard;
    static constexpr std::size_t shard_count = 16;

    [[nodiscard]] Shard& shard_of(const SecretDigest& digest) const;

    const std::size_t most_;
    std::unique_ptr<std::array<Shard, shard_count>> shards_;
    mutable std::mutex ids_mutex_;  // of all below
    absl::flat_hash_map<std::string, SecretDigest> ids_;
    std::mutex uses_mutex_;
    std::vector<std::shared_ptr<Entry>> used_;  // each once, until its use is taken
};

}  // namespace ration
