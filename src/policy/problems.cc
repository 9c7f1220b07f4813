#include "policy/problems.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/text.h"

namespace ration {
namespace {

// Longer words are not compared: a file cannot make the reader do quadratic work.
constexpr std::size_t max_compared_bytes = 64;

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        last[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

}  // namespace

std::string Problem::text() const {
    if (at.line == 0) {
        return cat(file, ": ", reason);
    }
    return cat(file, ":", at.line, ":", at.column, ": ", reason);
}

void Problems::add(std::vector<Problem>& list, Problem problem) {
    if (list.size() < max_problems) {
        list.push_back(std::move(problem));
    } else if (list.size() == max_problems) {
        list.push_back({std::move(problem.file), {}, "more problems follow; these come first"});
    }
}

void Problems::error(std::string_view file, Position at, std::string reason) {
    add(errors_, {std::string(file), at, std::move(reason)});
}

void Problems::warning(std::string_view file, Position at, std::string reason) {
    add(warnings_, {std::string(file), at, std::move(reason)});
}

void Problems::sort_from(Mark from) {
    const auto by_place = [](const Problem& a, const Problem& b) {
        return a.at.line != 0 && (b.at.line == 0 || std::pair(a.at.line, a.at.column) <
                                                        std::pair(b.at.line, b.at.column));
    };
    const auto sort = [&](std::vector<Problem>& list, std::size_t start) {
        std::stable_sort(list.begin() + static_cast<std::ptrdiff_t>(std::min(start, list.size())),
                         list.end(), by_place);
    };
    sort(errors_, from.errors);
    sort(warnings_, from.warnings);
}

absl::Status Problems::status() const {
    if (ok()) {
        return absl::OkStatus();
    }
    std::string text;
    for (const Problem& problem : errors_) {
        text += cat(text.empty() ? "" : "\n", problem.text());
    }
    return absl::InvalidArgumentError(text);
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
    if (word.empty() || word.size() > max_compared_bytes) {
        return {};
    }
    const std::string lower = absl::AsciiStrToLower(std::string(word));
    std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::string_view found;
    const std::size_t looked_at = std::min(known.size(), max_known_words);
    for (std::size_t i = 0; i < looked_at; ++i) {
        const std::string_view candidate = known[i];
        const std::size_t shorter = std::min(candidate.size(), word.size());
        const std::size_t longer = std::max(candidate.size(), word.size());
        if (longer > max_compared_bytes || longer - shorter >= best) {
            continue;
        }
        const std::size_t distance =
            edit_distance(lower, absl::AsciiStrToLower(std::string(candidate)));
        if (distance < best) {
            best = distance;
            found = candidate;
        }
    }
    return found;
}

std::string_view slip_of(std::string_view word, const std::vector<std::string_view>& known,
                         std::size_t far) {
    constexpr std::size_t long_word = 7;
    const std::string lower = absl::AsciiStrToLower(std::string(word));
    std::string_view found;
    std::size_t best = far + 1;
    for (const std::string_view candidate : known) {
        const bool is_long = candidate.size() >= long_word;
        const std::size_t most = is_long ? far : 1;
        if (word.size() + most < candidate.size() || candidate.size() + most < word.size()) {
            continue;
        }
        const std::size_t distance = edit_distance(lower, candidate);
        const bool same_start = !lower.empty() && lower[0] == candidate[0];
        if (distance <= most && distance < best && (same_start || (is_long && distance == 1))) {
            best = distance;
            found = candidate;
        }
    }
    return found;
}

}  // namespace ration
