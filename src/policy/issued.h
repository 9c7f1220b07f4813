// Credentials that were made at run time: what is known of one, and where the engine asks for them.
//
// Only the SHA-256 of a secret is kept. Looking one up costs a hash and no I/O, whether the secret
// is known or not. Thread rule: `find` from any thread. Ownership: what it returns is shared.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "policy/directory.h"
#include "ration/ledger.h"
#include "ration/time.h"

namespace ration {

// 32 random bytes in base64url without padding (RFC 4648, section 5) follow the kind's prefix.
inline constexpr std::size_t issued_random_bytes = 32;
inline constexpr std::size_t issued_random_characters = 43;

class IssuedCredentials {
public:
    virtual ~IssuedCredentials() = default;

    // nullptr: nobody has that secret. Its entities are those of `directory`.
    [[nodiscard]] virtual std::shared_ptr<const Credential> find(
        std::string_view kind, std::string_view secret,
        const std::shared_ptr<const Directory>& directory, Wall now) = 0;
};

// The token as a credential: its owner, and whatever the directory says that leads to. nullptr: the
// directory has owners of that kind and this is none of them any more.
[[nodiscard]] std::shared_ptr<const Credential> credential_of(const IssuedToken& token,
                                                              const Directory& directory);

}  // namespace ration
