#include "engine/rate_fields.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "request/header.h"

namespace ration {
namespace {

__extension__ using i128 = __int128;

constexpr std::int64_t nanos_per_second = 1'000'000'000;

// Text of bounded length, put together on the stack.
class Text {
public:
    Text& operator<<(std::string_view text) {
        const std::size_t size = std::min(text.size(), buffer_.size() - size_);
        std::memcpy(buffer_.data() + size_, text.data(), size);
        size_ += size;
        return *this;
    }
    Text& operator<<(std::uint64_t number) {
        size_ = static_cast<std::size_t>(
            std::to_chars(buffer_.data() + size_, buffer_.data() + buffer_.size(), number).ptr -
            buffer_.data());
        return *this;
    }
    [[nodiscard]] std::string_view view() const { return {buffer_.data(), size_}; }

private:
    std::array<char, 256> buffer_;
    std::size_t size_ = 0;
};

// A structured-field String (RFC 9651 3.3.3): printable ASCII, quote and backslash escaped. A name
// outside ASCII keeps its shape with question marks.
void put_name(Text& text, std::string_view name) {
    text << "\"";
    for (const char& c : name) {
        const bool printable = c >= 0x20 && c < 0x7f;
        if (c == '"' || c == '\\') {
            text << "\\";
        }
        text << (printable ? std::string_view(&c, 1) : std::string_view("?"));
    }
    text << "\"";
}

// The time in which the whole of `capacity` is given out: the window, or a full refill.
std::uint64_t window_seconds(const Limit& limit) {
    if (limit.kind == LimitKind::concurrency || limit.amount == 0) {
        return ceil_seconds(limit.kind == LimitKind::concurrency ? Nanos(0) : limit.period);
    }
    const i128 nanos = i128{limit.period.count()} * static_cast<i128>(limit.capacity) /
                       static_cast<i128>(limit.amount);
    return static_cast<std::uint64_t>((nanos + nanos_per_second - 1) / nanos_per_second);
}

void draft_10(const Exchange& exchange, std::size_t at, FieldSink sink) {
    const Level& level = exchange.outcome.levels[at];
    const Limit& limit = *exchange.charges[at].limit;
    Text policy;
    put_name(policy, exchange.rule_at(at).name);
    policy << ";q=" << level.limit;
    if (const std::uint64_t window = window_seconds(limit); window != 0) {
        policy << ";w=" << window;
    }
    if (limit.kind == LimitKind::concurrency) {
        policy << ";qu=\"concurrent-requests\"";
    }
    sink("RateLimit-Policy", policy.view());
    Text now;
    put_name(now, exchange.rule_at(at).name);
    now << ";r=" << level.remaining;
    if (level.next > Nanos(0)) {
        now << ";t=" << ceil_seconds(level.next);
    }
    sink("RateLimit", now.view());
}

void draft_03(const Exchange& exchange, std::size_t at, FieldSink sink) {
    const Level& level = exchange.outcome.levels[at];
    Text limit;
    limit << level.limit;
    if (const std::uint64_t window = window_seconds(*exchange.charges[at].limit); window != 0) {
        limit << ", " << level.limit << ";w=" << window;
    }
    sink("RateLimit-Limit", limit.view());
    Text remaining;
    remaining << level.remaining;
    sink("RateLimit-Remaining", remaining.view());
    if (exchange.charges[at].limit->kind == LimitKind::concurrency) {
        return;
    }
    Text reset;
    reset << ceil_seconds(level.reset);
    sink("RateLimit-Reset", reset.view());
}

void x_ratelimit(const Exchange& exchange, std::size_t at, FieldSink sink) {
    const Level& level = exchange.outcome.levels[at];
    Text limit;
    limit << level.limit;
    sink("X-RateLimit-Limit", limit.view());
    Text remaining;
    remaining << level.remaining;
    sink("X-RateLimit-Remaining", remaining.view());
    if (exchange.charges[at].limit->kind == LimitKind::concurrency) {
        return;  // nobody knows when the others will be done
    }
    Text reset;
    reset << epoch_seconds(exchange.arrived.wall, level.reset);
    sink("X-RateLimit-Reset", reset.view());
}

HeaderFamily shown_family(const Exchange& exchange) {
    return exchange.decision.charge < 0
               ? HeaderFamily::none
               : exchange.rule_at(static_cast<std::size_t>(exchange.decision.charge)).headers;
}

}  // namespace

std::uint64_t ceil_seconds(Nanos span) {
    const std::int64_t nanos = std::max<std::int64_t>(span.count(), 0);
    return static_cast<std::uint64_t>(nanos / nanos_per_second +
                                      (nanos % nanos_per_second != 0 ? 1 : 0));
}

std::uint64_t epoch_seconds(Wall now, Nanos after) {
    const Nanos since_epoch = now.time_since_epoch();
    return ceil_seconds(after < Nanos::max() - since_epoch ? since_epoch + after : Nanos::max());
}

void rate_limit_fields(const Exchange& exchange, bool refusal, FieldSink sink) {
    const auto at = static_cast<std::size_t>(exchange.decision.charge);
    switch (shown_family(exchange)) {
        case HeaderFamily::none:
            return;
        case HeaderFamily::ratelimit_remaining_on_refusal:
            if (refusal) {
                sink("RateLimit-Remaining", "0");
            }
            return;
        case HeaderFamily::x_ratelimit:
            return x_ratelimit(exchange, at, sink);
        case HeaderFamily::ietf_draft_10:
            return draft_10(exchange, at, sink);
        case HeaderFamily::ietf_draft_03:
            return draft_03(exchange, at, sink);
    }
}

bool is_own_rate_limit_field(const Exchange& exchange, std::string_view name) {
    const auto any_of = [&](std::initializer_list<std::string_view> names) {
        return std::any_of(names.begin(), names.end(),
                           [&](std::string_view own) { return equal_ignoring_case(own, name); });
    };
    switch (shown_family(exchange)) {
        case HeaderFamily::x_ratelimit:
            return any_of({"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"});
        case HeaderFamily::ietf_draft_03:
            return any_of({"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"});
        case HeaderFamily::none:
        case HeaderFamily::ratelimit_remaining_on_refusal:
        case HeaderFamily::ietf_draft_10:
            return false;
    }
    return false;
}

}  // namespace ration
