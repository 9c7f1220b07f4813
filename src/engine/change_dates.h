// When the numbers of limits last changed: what is kept under other numbers goes on under those
// until that moment (limits/use.h).
//
// A reload dates only what it changes, so that none that changes something else moves what callers
// were told. Numbers written in the policy change for everybody; those that attributes say change
// for each subject by itself. Immutable once made; thread rule: const, share freely.
//
//   charge.numbers_since = exchange.rules->dates->of(exchange, index);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "policy/directory.h"
#include "policy/policy.h"
#include "ration/time.h"

namespace ration {

struct Exchange;
struct Snapshot;

class ChangeDates {
public:
    // Of rules that come into force at `now` in the place of `before`; null: they are the first.
    ChangeDates(const Policy& policy, const Directory& directory, const Snapshot* before, Mono now);

    // For whoever this request is, of the limit `index` of the policy.
    [[nodiscard]] Mono of(const Exchange& exchange, std::uint16_t index) const;

private:
    // A limit and what leads to its number: a credential, or an entity that requests name.
    using Subject = std::pair<std::uint16_t, const void*>;
    struct Change;

    void compare_subjects(const Change& change, std::uint16_t index, std::uint16_t old_index);
    void compare_entities(const Change& change, std::uint16_t index, std::uint16_t old_index);
    void compare_credentials(const Change& change, std::uint16_t index, std::uint16_t old_index);
    [[nodiscard]] Mono of_subject(Subject subject) const;

    std::vector<Mono> rules_;  // by index of the limit
    absl::flat_hash_map<Subject, Mono> subjects_;
    Mono directory_{};  // when the directory last changed
};

}  // namespace ration
