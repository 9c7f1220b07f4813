#include "wire/rate_limit_fields.h"

#include <algorithm>

#include "wire/decimal.h"
#include "wire/fixed_text.h"
#include "wire/structured_field.h"

namespace ration {
namespace {

// A name with every character escaped, and four parameters of fifteen digits.
using Value = FixedText<2 * max_field_name_bytes + 192>;

std::uint64_t clamped(std::uint64_t number) {
    return std::min(number, max_field_integer);
}

void send_integer(std::string_view name, std::uint64_t number, RateLimitFieldSink sink) {
    FixedText<24> value;
    value.append_integer(clamped(number));
    sink(name, value.view());
}

void add_parameter(Value& value, std::string_view key, std::uint64_t number) {
    value.push_back(';');
    value.append(key);
    value.push_back('=');
    value.append_integer(clamped(number));
}

// The window in whole seconds; 0 where it has none to tell.
std::uint64_t whole_window(const RateLimitNumbers& numbers) {
    const bool whole = numbers.window.count() > 0 &&
                       numbers.window % std::chrono::seconds(1) == std::chrono::nanoseconds(0);
    return whole && !numbers.concurrent ? seconds_rounded_up(numbers.window) : 0;
}

std::uint64_t amount_of(const RateLimitNumbers& numbers) {
    return numbers.amount != 0 ? numbers.amount : numbers.limit;
}

void render_x_ratelimit(const RateLimitNumbers& numbers, RateLimitFieldSink sink) {
    send_integer("X-RateLimit-Limit", numbers.limit, sink);
    send_integer("X-RateLimit-Remaining", numbers.remaining, sink);
    if (!numbers.concurrent) {
        send_integer("X-RateLimit-Reset",
                     epoch_seconds_rounded_up(moment_after(numbers.now, numbers.reset)), sink);
    }
}

void render_draft_03(const RateLimitNumbers& numbers, RateLimitFieldSink sink) {
    Value limit;
    limit.append_integer(clamped(numbers.limit));
    if (const std::uint64_t window = whole_window(numbers); window != 0) {
        limit.append(", ");
        limit.append_integer(clamped(amount_of(numbers)));
        add_parameter(limit, "w", window);
    }
    sink("RateLimit-Limit", limit.view());
    send_integer("RateLimit-Remaining", numbers.remaining, sink);
    if (!numbers.concurrent) {
        send_integer("RateLimit-Reset", seconds_rounded_up(numbers.reset), sink);
    }
}

void render_draft_10(const RateLimitNumbers& numbers, RateLimitFieldSink sink) {
    if (!is_field_name_text(numbers.name)) {
        return;
    }
    Value policy;
    write_sf_string(policy, numbers.name);
    add_parameter(policy, "q", amount_of(numbers));
    if (numbers.concurrent) {
        policy.append(";qu=\"concurrent-requests\"");
    }
    if (const std::uint64_t window = whole_window(numbers); window != 0) {
        add_parameter(policy, "w", window);
    }
    if (amount_of(numbers) != numbers.limit) {
        add_parameter(policy, "ration-burst", numbers.limit);
    }
    sink("RateLimit-Policy", policy.view());

    Value state;
    write_sf_string(state, numbers.name);
    add_parameter(state, "r", numbers.remaining);
    if (numbers.next && numbers.next->count() > 0) {
        add_parameter(state, "t", seconds_rounded_up(*numbers.next));
    }
    sink("RateLimit", state.view());
}

}  // namespace

void render_rate_limit_fields(HeaderFamily family, const RateLimitNumbers& numbers,
                              RateLimitFieldSink sink) {
    switch (family) {
        case HeaderFamily::none:
            return;
        case HeaderFamily::ratelimit_remaining_on_refusal:
            // No request of this cost can be had, so 0, whatever smaller ones would find.
            if (numbers.refused) {
                sink("RateLimit-Remaining", "0");
            }
            return;
        case HeaderFamily::x_ratelimit:
            render_x_ratelimit(numbers, sink);
            return;
        case HeaderFamily::ietf_draft_03:
            render_draft_03(numbers, sink);
            return;
        case HeaderFamily::ietf_draft_10:
            render_draft_10(numbers, sink);
            return;
    }
}

RateLimitFieldNames rate_limit_field_names(HeaderFamily family) {
    switch (family) {
        case HeaderFamily::none:
            break;
        case HeaderFamily::ratelimit_remaining_on_refusal:
            return {{"RateLimit-Remaining"}};
        case HeaderFamily::x_ratelimit:
            return {{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}};
        case HeaderFamily::ietf_draft_03:
            return {{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}};
        case HeaderFamily::ietf_draft_10:
            return {{"RateLimit-Policy", "RateLimit"}};
    }
    return {};
}

bool is_field_name_text(std::string_view name) {
    return !name.empty() && name.size() <= max_field_name_bytes && is_sf_string(name);
}

}  // namespace ration
