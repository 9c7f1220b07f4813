#include "client/gate_book.h"

#include <algorithm>

namespace ration::client {
namespace {

constexpr std::size_t most_looks = 64;

}  // namespace

Gate* GateBook::find(std::string_view key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->gate;
}

Gate& GateBook::open(const std::string& key, Mono now) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
        entries_.splice(entries_.end(), entries_, found->second);
        return found->second->gate;
    }
    if (entries_.size() >= max_ && !forget_one(now)) {
        return shared_.gate;
    }
    const auto entry = entries_.insert(entries_.end(), Entry{key, Gate(policy_, random_, paced_)});
    index_.emplace(entry->key, entry);
    return entry->gate;
}

bool GateBook::forget_one(Mono now) {
    for (std::size_t looks = std::min(entries_.size(), most_looks); looks > 0; --looks) {
        const auto oldest = entries_.begin();
        if (oldest->gate.idle(now)) {
            index_.erase(oldest->key);
            entries_.erase(oldest);
            return true;
        }
        entries_.splice(entries_.end(), entries_, oldest);  // looked at last the next time
    }
    return false;
}

}  // namespace ration::client
