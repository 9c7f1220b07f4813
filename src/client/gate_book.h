// Gates by key, at most `max_gates` of them. A new one takes the place of one that holds nobody
// back; when each of those looked at does, newcomers share one. Thread rule: one lock outside.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/gate.h"

namespace ration::client {

class GateBook {
public:
    struct Entry {
        std::string key;
        Gate gate;
    };

    GateBook(const RetryPolicy& policy, RandomSource& random, std::size_t max, bool paced)
        : policy_(policy),
          random_(random),
          max_(max),
          paced_(paced),
          shared_{std::string(), Gate(policy, random, paced)} {}

    // nullptr when nothing is known of the key.
    [[nodiscard]] Gate* find(std::string_view key);
    // The gate stays where it is as long as a ticket is queued or granted there.
    [[nodiscard]] Gate& open(const std::string& key, Mono now);
    [[nodiscard]] const std::list<Entry>& entries() const { return entries_; }

private:
    [[nodiscard]] bool forget_one(Mono now);

    const RetryPolicy& policy_;
    RandomSource& random_;
    std::size_t max_;
    bool paced_;
    std::list<Entry> entries_;  // the longest unused first
    std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
    Entry shared_;
};

}  // namespace ration::client
