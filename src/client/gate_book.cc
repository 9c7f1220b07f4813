#include "client/gate_book.h"

namespace ration::client {
namespace {

constexpr int most_looks = 64;

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
    int looks = 0;
    for (auto entry = entries_.begin(); entry != entries_.end() && looks < most_looks;
         ++entry, ++looks) {
        if (entry->gate.idle(now)) {
            index_.erase(entry->key);
            entries_.erase(entry);
            return true;
        }
    }
    return false;
}

}  // namespace ration::client
