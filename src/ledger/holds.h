// The places that attempts hold: of a ceiling or a quota, while their outcome is not known.
//
// A place of a running attempt is *reserved*: it may be released. A place of an attempt in doubt
// counts as written. This index is in memory; what it holds is rebuilt from the attempts on disk.
//
// Thread rule: one thread at a time. Pure: no I/O, no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace ration {

enum class PlaceKind : std::uint8_t { day, period, quota };

struct Place {
    PlaceKind kind = PlaceKind::day;
    std::string key;
    std::int64_t at = 0;    // day: the write's instant; period: its start; quota: 0
    std::int64_t ends = 0;  // of the window it was judged in, of a doubt about a quota

    friend bool operator==(const Place&, const Place&) = default;
};

// What is held of one ceiling in one window, or of one quota.
struct Held {
    std::uint64_t reserved = 0;
    std::uint64_t doubtful = 0;
};

class Holds {
public:
    void add(std::int64_t attempt, const std::vector<Place>& places, bool doubtful);
    void remove(std::int64_t attempt, const std::vector<Place>& places);
    void set_doubtful(std::int64_t attempt, const std::vector<Place>& places);
    void clear() { by_key_.clear(); }

    // Places of `key` with from <= at < to; a period asks for [start, start + 1).
    [[nodiscard]] Held held(std::string_view key, std::int64_t from, std::int64_t to) const;
    [[nodiscard]] bool empty() const { return by_key_.empty(); }

private:
    struct Item {
        std::int64_t attempt = 0;
        std::int64_t at = 0;
        bool doubtful = false;
    };
    absl::flat_hash_map<std::string, std::vector<Item>> by_key_;
};

}  // namespace ration
