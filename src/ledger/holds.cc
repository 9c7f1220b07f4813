#include "ledger/holds.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace ration {

void Holds::add(std::int64_t attempt, const std::vector<Place>& places, bool doubtful) {
    for (const Place& place : places) {
        by_key_[place.key].push_back({attempt, place.at, doubtful});
    }
}

void Holds::remove(std::int64_t attempt, const std::vector<Place>& places) {
    for (const Place& place : places) {
        const auto found = by_key_.find(place.key);
        if (found == by_key_.end()) {
            continue;
        }
        std::erase_if(found->second, [&](const Item& item) { return item.attempt == attempt; });
        if (found->second.empty()) {
            by_key_.erase(found);
        }
    }
}

void Holds::set_doubtful(std::int64_t attempt, const std::vector<Place>& places) {
    for (const Place& place : places) {
        const auto found = by_key_.find(place.key);
        if (found == by_key_.end()) {
            continue;
        }
        for (Item& item : found->second) {
            if (item.attempt == attempt) {
                item.doubtful = true;
            }
        }
    }
}

Held Holds::held(std::string_view key, std::int64_t from, std::int64_t to) const {
    Held held;
    const auto found = by_key_.find(absl::string_view(key.data(), key.size()));
    if (found == by_key_.end()) {
        return held;
    }
    for (const Item& item : found->second) {
        if (item.at < from || item.at >= to) {
            continue;
        }
        (item.doubtful ? held.doubtful : held.reserved) += 1;
    }
    return held;
}

}  // namespace ration
