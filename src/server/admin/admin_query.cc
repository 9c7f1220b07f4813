#include "server/admin/admin_query.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "request/path.h"

namespace ration {

namespace {

std::string decoded(std::string_view text) {
    std::string out(text.size(), '\0');
    out.resize(percent_decoded(text, out, PlusSign::blank).size());
    return out;
}

}  // namespace

absl::StatusOr<AdminQuery> AdminQuery::parse(std::string_view query) {
    AdminQuery parsed;
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(pair.size() + 1, query.size()));
        if (pair.empty()) {
            continue;
        }
        const std::size_t equals = std::min(pair.find('='), pair.size());
        std::string name = decoded(pair.substr(0, equals));
        for (const auto& [other, value] : parsed.left_) {
            if (other == name) {
                return absl::InvalidArgumentError(cat("'", name, "' is given twice."));
            }
        }
        parsed.left_.emplace_back(std::move(name),
                                  decoded(pair.substr(std::min(equals + 1, pair.size()))));
    }
    return parsed;
}

std::optional<std::string> AdminQuery::take(std::string_view name) {
    const auto found = std::find_if(left_.begin(), left_.end(),
                                    [&](const auto& pair) { return pair.first == name; });
    if (found == left_.end()) {
        return std::nullopt;
    }
    std::string value = std::move(found->second);
    left_.erase(found);
    return value;
}

absl::StatusOr<std::uint64_t> AdminQuery::take_number(std::string_view name,
                                                      std::uint64_t otherwise, std::uint64_t least,
                                                      std::uint64_t most) {
    const std::optional<std::string> text = take(name);
    if (!text) {
        return otherwise;
    }
    std::uint64_t number = 0;
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, number);
    if (read.ec != std::errc{} || read.ptr != end || number < least || number > most) {
        return absl::InvalidArgumentError(
            cat("'", name, "' is a whole number from ", least, " to ", most, "."));
    }
    return number;
}

absl::Status AdminQuery::finish() const {
    return left_.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(cat("This path takes no '", left_.front().first, "'."));
}

}  // namespace ration
