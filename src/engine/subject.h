// What a selector of the policy stands for in one request: key parts, entities, attributes.
//
// Pure; allocates nothing. Thread rule: as the exchange's. Views point into the request, the
// snapshot or the exchange's buffers. Nothing found is nothing: a rule whose attribute the subject
// lacks does not apply to it, and no two callers ever share an empty value for want of one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exchange.h"
#include "policy/directory.h"
#include "policy/policy.h"

namespace ration {

// Room for values that have to be rewritten (decoded query parameters, numbers).
class Scratch {
public:
    explicit Scratch(std::span<char> room) : room_(room) {}

    [[nodiscard]] std::span<char> room() const { return room_; }
    // The first `size` bytes, which are in use from now on.
    std::string_view take(std::size_t size) {
        const std::string_view taken(room_.data(), size);
        room_ = room_.subspan(size);
        return taken;
    }

private:
    std::span<char> room_;
};

// The value of `selector` as a key part.
[[nodiscard]] std::optional<std::string_view> key_part(const Exchange& exchange,
                                                       const Selector& selector, Scratch& scratch);

// Fills in `bound`, the entities that the request itself names; before any of the others.
void bind_entities(Exchange& exchange);

// The id of the entity of that kind: bound from the request, else led to by the credential.
[[nodiscard]] std::optional<std::string_view> entity_id(const Exchange& exchange,
                                                        std::string_view kind);

// The attribute at the end of `path` ({account, plan, calendars}), or nullptr.
[[nodiscard]] const AttributeValue* attribute(const Exchange& exchange,
                                              const std::vector<std::string>& path);
// Follows path[0], path[1], ... from `entity` and returns the attribute that the last one names.
[[nodiscard]] const AttributeValue* follow(const Directory& directory, const Entity* entity,
                                           std::span<const std::string> path);
// A limit's amount as an attribute says it; what is not a number admits nothing.
[[nodiscard]] std::int64_t amount_of(const AttributeValue& value);

// The method that counts: HEAD runs GET's handler and spends its budget.
[[nodiscard]] std::string_view counted_method(std::string_view method);

}  // namespace ration
