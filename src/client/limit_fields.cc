#include "client/limit_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "client/hints.h"
#include "wire/structured_field.h"

namespace ration::client {
namespace {

constexpr std::uint64_t most_remaining = (std::uint64_t{1} << 53U) - 1;

std::optional<std::uint64_t> whole_number(std::string_view text) {
    if (text.empty()) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (const char c : text) {
        if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
            return std::nullopt;
        }
        value = std::min(value * 10 + static_cast<std::uint64_t>(c - '0'), most_remaining);
    }
    return value;
}

const SfBareItem* parameter(const SfItem& item, std::string_view name) {
    for (const auto& [key, value] : item.parameters) {
        if (key == name) {
            return &value;
        }
    }
    return nullptr;
}

std::optional<std::string> name_of(const SfItem& item) {
    if (const auto* text = std::get_if<std::string>(&item.value)) {
        return *text;
    }
    const auto* token = std::get_if<SfToken>(&item.value);
    return token ? std::optional(token->text) : std::nullopt;
}

std::optional<ToldLimit> limit_of(const SfMember& member) {
    const auto* item = std::get_if<SfItem>(&member);
    const auto name = item ? name_of(*item) : std::nullopt;
    const SfBareItem* r = item ? parameter(*item, "r") : nullptr;
    const auto* remaining = r ? std::get_if<std::int64_t>(r) : nullptr;
    if (!name || !remaining || *remaining < 0) {
        return std::nullopt;
    }
    ToldLimit limit{*name, static_cast<std::uint64_t>(*remaining), {}, {}};
    if (const SfBareItem* t = parameter(*item, "t")) {
        const auto* seconds = std::get_if<std::int64_t>(t);
        if (!seconds || *seconds < 0) {
            return std::nullopt;
        }
        const auto most = std::chrono::floor<std::chrono::seconds>(longest_hint).count();
        limit.reset_in = std::chrono::seconds(std::min<std::int64_t>(*seconds, most));
    }
    return limit;
}

std::vector<ToldLimit> structured_limits(std::string_view text) {
    text = trim_blanks(text);
    if (text.size() > max_limit_field_bytes) {
        return {};
    }
    const auto list = parse_sf_list(text);
    if (!list.ok() || list->size() > max_told_limits) {
        return {};
    }
    std::vector<ToldLimit> limits;
    for (const SfMember& member : *list) {
        auto limit = limit_of(member);
        if (!limit) {
            return {};
        }
        limits.push_back(std::move(*limit));
    }
    return limits;
}

std::optional<ToldLimit> limit_of_fields(std::string_view remaining_text,
                                         const std::optional<std::string>& reset_text, Wall now) {
    const auto remaining = whole_number(trim_blanks(remaining_text));
    if (!remaining) {
        return std::nullopt;
    }
    ToldLimit limit{"default", *remaining, {}, {}};
    if (reset_text) {
        const auto reset = parse_delay_or_moment(trim_blanks(*reset_text), now);
        if (!reset) {
            return std::nullopt;
        }
        limit.reset_in = reset->wait;
        limit.reset_date = reset->moment;
    }
    return limit;
}

}  // namespace

std::vector<ToldLimit> parse_limit_fields(FieldReader field, Wall now) {
    std::vector<ToldLimit> limits;
    if (const auto structured = field("ratelimit")) {
        limits = structured_limits(*structured);
    }
    constexpr std::pair<std::string_view, std::string_view> families[] = {
        {"ratelimit-remaining", "ratelimit-reset"}, {"x-ratelimit-remaining", "x-ratelimit-reset"}};
    for (const auto& [remaining_field, reset_field] : families) {
        if (const auto remaining = field(remaining_field)) {
            auto limit = limit_of_fields(*remaining, field(reset_field), now);
            if (limit) {
                limits.push_back(std::move(*limit));
            }
        }
    }
    return limits;
}

}  // namespace ration::client
