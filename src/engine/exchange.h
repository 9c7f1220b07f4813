// One request on its way through the engine: everything the steps found out about it.
//
// Reusable: `Engine::begin` resets it, so a connection keeps one and allocates nothing after
// warm-up. Thread rule: one thread at a time. The request's bytes (method, target, headers) must
// stay in place until `Engine::finish`. An exchange that is destroyed while open is settled as a
// client that went away, so no exit of a connection can keep an in-flight slot; beginning the next
// request before the last one is finished is a fault of the program and stops it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/snapshot.h"
#include "policy/directory.h"
#include "policy/key.h"
#include "policy/policy.h"
#include "ration/counters.h"
#include "request/path.h"

namespace ration {

class Durable;
class Engine;

// A request as the outside hands it over.
struct RequestView {
    std::string_view method;
    std::string_view target;  // path and query, as on the request line
    std::span<const Header> headers = {};
    Peer peer = {};
    std::string_view id = {};  // the request's id, made outside (randomness is injected)
    // Read whole; looked at only where `Policy::body_routes` says so.
    std::string_view body = {};
};

// What was decided. Trivially copyable: indices into the policy instead of strings.
struct Decision {
    enum class Kind : std::uint8_t {
        admit,      // forward it
        refuse,     // answer with refusal `refusal`
        preflight,  // answer a CORS pre-check; nothing was charged
        replay,     // answer with what the ledger kept of the first request with this key
    };
    Kind kind = Kind::admit;
    bool store_down = false;    // some limit got no answer from the counters
    std::uint16_t refusal = 0;  // index into Policy::refusals, when refused
    std::int16_t rule = -1;     // binding limit: refused: the one that refused; admitted: the one
                                // whose numbers are shown, -1 when none is
    std::int16_t charge = -1;   // the charge whose numbers are shown, -1: none; it is the
                                // binding rule's, save on ration's own 401, 404, 502, ...
    std::optional<Nanos> wait;  // refused, waiting helps, and it is known how long: exactly
    std::uint32_t shadow_refused = 0;  // bit i: charge i is in shadow and would have refused
};

struct Exchange {
    // Known after `begin`.
    std::shared_ptr<const Snapshot> rules;
    Now arrived;
    // The time that decided: `arrived`, or what shared counters read from their own clock.
    Now charged_at;
    RequestView request;
    // What counts as the method: the request's, or the one that a forwarded pre-check asks for.
    std::string_view method;
    // A CORS pre-check for the upstream to answer. Blocks are its only charges, no rule of the
    // ledger speaks about it, and whoever asks is welcome: browsers send it without credentials.
    bool preflight = false;
    NormalTarget target;  // path in `path_buffer`
    RouteMatch route;
    KindIndex kind = kind_anonymous;
    const Credential* credential = nullptr;    // owned by `rules`, or by `issued`
    std::shared_ptr<const Credential> issued;  // one that was made at run time
    CallerAddress address;
    std::string_view origin;  // of a cross-origin request, else empty
    // Ids of the entities that the request itself names, in the order of Policy::bound_entities.
    std::vector<std::optional<std::string_view>> bound;
    std::size_t bound_bytes = 0;  // of the scratch room, used by them
    Outcome outcome;  // what the counters said; levels as `charges`, good for those in `judged`
    Decision decision;
    // What is asked of the ledger for this request; null when no durable rule speaks about it.
    std::shared_ptr<Durable> durable;

    // The charges, and which limit of the policy each belongs to. Enforced ones come first, in
    // policy order; those from `enforced_count` on are in shadow.
    std::array<Charge, max_charges + 1> charges;  // one more to see it is one too many
    std::array<std::uint16_t, max_charges> rule_of{};
    std::uint8_t charge_count = 0;
    std::uint8_t enforced_count = 0;

    // Sets of charges, bit i for charge i.
    std::uint32_t to_settle = 0;  // something is left to do at the end (slots, stated costs)
    std::uint32_t taken = 0;      // the counters have it
    std::uint32_t local = 0;      // taken from the stand-in counters
    std::uint32_t judged = 0;     // its level is known

    std::uint64_t lease = 0;
    bool open = false;             // begun and not yet settled
    Engine* engine = nullptr;      // that `rules` is from
    std::uint64_t generation = 0;  // of `rules` in that engine
    std::array<char, max_target_bytes> path_buffer;
    std::array<char, (max_charges + 1) * max_built_key_bytes> key_buffer;  // one more to see it is
                                                                           // one too many
    Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange();

    // What the path leaves of its buffer: for values that have to be decoded.
    [[nodiscard]] std::span<char> scratch_room() {
        return std::span(path_buffer).subspan(target.path.size() + bound_bytes);
    }
    [[nodiscard]] const Policy& policy() const { return *rules->policy; }
    [[nodiscard]] const LimitRule& rule_at(std::size_t charge) const {
        return policy().limits[rule_of[charge]];
    }
    // The limit whose numbers are shown or that refused; nullptr when there is none.
    [[nodiscard]] const LimitRule* binding_rule() const;
    // The name of the rule that decided: that limit, or a ceiling, quota or idempotency rule.
    [[nodiscard]] std::string_view binding_name() const;
};

}  // namespace ration
