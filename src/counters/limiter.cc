// The library's front door: keys are "name<1f>number<1f>key", built on the stack; a name has no
// control characters and a key comes last, so no two can run together.
#include "ration/limiter.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ration {

namespace {

constexpr char separator = '\x1f';
constexpr std::size_t max_prefix_bytes = max_limiter_name_bytes + 4;  // two separators, two digits
constexpr std::size_t digest_bytes = 32;
static_assert(max_prefix_bytes + 1 + digest_bytes <= max_key_bytes);

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

absl::Status check_name(std::string_view name) {
    if (name.empty() || name.size() > max_limiter_name_bytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a limiter's name has 1 to ", max_limiter_name_bytes, " bytes, got ", name.size()));
    }
    if (std::any_of(name.begin(), name.end(), is_control)) {
        return absl::InvalidArgumentError("a limiter's name has no control characters");
    }
    return absl::OkStatus();
}

// Appends `key` to the prefix in `buffer`. One that is too long is replaced by its BLAKE2b digest,
// behind a separator, where a short key that begins with one is digested too.
std::size_t append_key(std::array<char, max_key_bytes>& buffer, std::size_t at,
                       std::string_view key) {
    const bool fits = key.size() <= buffer.size() - max_prefix_bytes;
    if (fits && (key.empty() || key.front() != separator)) {
        std::copy(key.begin(), key.end(), buffer.begin() + static_cast<std::ptrdiff_t>(at));
        return at + key.size();
    }
    buffer[at] = separator;
    std::array<unsigned char, digest_bytes> digest;
    crypto_generichash(digest.data(), digest.size(),
                       reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr, 0);
    std::memcpy(buffer.data() + at + 1, digest.data(), digest.size());
    return at + 1 + digest.size();
}

}  // namespace

std::int64_t Taken::retry_after_seconds() const {
    if (allowed || never || status != absl::StatusCode::kOk) {
        return 0;
    }
    return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(wait).count());
}

Limiter::Limiter(std::vector<Rule> rules, std::shared_ptr<Counters> counters)
    : rules_(std::move(rules)), counters_(std::move(counters)) {}

absl::StatusOr<Limiter> Limiter::create(std::string_view name, const Limit& limit,
                                        std::shared_ptr<Counters> counters) {
    return create(name, {limit}, std::move(counters));
}

absl::StatusOr<Limiter> Limiter::create(std::string_view name, std::initializer_list<Limit> limits,
                                        std::shared_ptr<Counters> counters) {
    if (absl::Status status = check_name(name); !status.ok()) {
        return status;
    }
    if (limits.size() == 0 || limits.size() > max_charges) {
        return absl::InvalidArgumentError(
            absl::StrCat("a limiter has 1 to ", max_charges, " limits, got ", limits.size()));
    }
    std::vector<Rule> rules;
    for (const Limit& limit : limits) {
        absl::StatusOr<LimitRef> ref = LimitRef::of(limit);
        if (!ref.ok()) {
            return ref.status();
        }
        std::string prefix(name);
        prefix += separator;
        prefix += std::to_string(rules.size());
        prefix += separator;
        rules.push_back({std::move(prefix), *ref});
    }
    if (counters == nullptr) {
        absl::StatusOr<std::unique_ptr<Counters>> own = open_memory_counters({});
        if (!own.ok()) {
            return own.status();
        }
        counters = *std::move(own);
    }
    return Limiter(std::move(rules), std::move(counters));
}

Taken Limiter::charge(std::string_view key, std::uint32_t cost, Now now, ChargeOp op) const {
    std::array<std::array<char, max_key_bytes>, max_charges> buffers;
    std::array<Charge, max_charges> charges;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        const std::string& prefix = rules_[i].prefix;
        std::copy(prefix.begin(), prefix.end(), buffers[i].begin());
        const std::size_t size = append_key(buffers[i], prefix.size(), key);
        charges[i].key = {buffers[i].data(), size};
        charges[i].rule_bytes = static_cast<std::uint16_t>(prefix.size());
        charges[i].op = op;
        charges[i].cost = cost;
        charges[i].limit = rules_[i].limit;
    }
    const Outcome outcome = counters_->apply_one({.charges = {charges.data(), rules_.size()}}, now);
    Taken taken;
    taken.status = outcome.status;
    if (outcome.status != absl::StatusCode::kOk) {
        return taken;
    }
    taken.allowed = true;
    taken.remaining = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < outcome.count; ++i) {
        const Level& level = outcome.levels[i];
        taken.allowed = taken.allowed && level.verdict == Verdict::admitted;
        taken.never = taken.never || level.verdict == Verdict::never;
        taken.wait = std::max(taken.wait, level.wait);
        taken.remaining = std::min(taken.remaining, level.remaining);
    }
    taken.wait = taken.never ? Nanos{0} : taken.wait;
    return taken;
}

Taken Limiter::take(std::string_view key, std::uint32_t cost, Now now) const {
    return charge(key, cost, now, ChargeOp::take);
}

Taken Limiter::look(std::string_view key, std::uint32_t cost, Now now) const {
    return charge(key, cost, now, ChargeOp::observe);
}

void Limiter::give_back(std::string_view key, std::uint32_t cost, Now now) const {
    (void)charge(key, cost, now, ChargeOp::give_back);
}

}  // namespace ration
