#include "policy/rate.h"

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/problems.h"
#include "policy/reader.h"
#include "ration/limit.h"

namespace ration {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t nanos;
};

constexpr std::int64_t second = 1'000'000'000;
constexpr std::array units{
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", second},
    Unit{"sec", second},
    Unit{"second", second},
    Unit{"seconds", second},
    Unit{"min", 60 * second},
    Unit{"minute", 60 * second},
    Unit{"minutes", 60 * second},
    Unit{"h", 3600 * second},
    Unit{"hour", 3600 * second},
    Unit{"hours", 3600 * second},
    Unit{"d", 86400 * second},
    Unit{"day", 86400 * second},
    Unit{"days", 86400 * second},
    Unit{"week", 7 * 86400 * second},
    Unit{"weeks", 7 * 86400 * second},
};

class Scanner {
public:
    explicit Scanner(std::string_view text) : text_(text) { skip_blanks(); }

    [[nodiscard]] std::size_t offset() const { return at_; }
    [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
    [[nodiscard]] bool at_digit() const { return !at_end() && is_digit(text_[at_]); }

    bool take(char c) {
        if (at_end() || text_[at_] != c) {
            return false;
        }
        ++at_;
        skip_blanks();
        return true;
    }

    // The longest run of characters that `wanted` likes.
    template <typename Wanted>
    std::string_view take_while(Wanted wanted) {
        const std::size_t start = at_;
        while (!at_end() && wanted(text_[at_])) {
            ++at_;
        }
        const std::string_view taken = text_.substr(start, at_ - start);
        skip_blanks();
        return taken;
    }

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }
    static bool is_letter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

private:
    void skip_blanks() {
        while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) {
            ++at_;
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

std::optional<TextProblem> take_whole(Scanner& scanner, std::uint64_t& number) {
    const std::size_t at = scanner.offset();
    const std::string_view digits = scanner.take_while(Scanner::is_digit);
    if (digits.empty()) {
        return TextProblem{at, "a whole number, 0 or more, is expected here"};
    }
    const auto value = parse_whole(digits);
    if (!value.has_value()) {
        return TextProblem{at, "the number is too large"};
    }
    number = *value;
    if (scanner.take('.')) {
        return TextProblem{at, "whole numbers only (3 per 2 min, not 1.5/min)"};
    }
    return std::nullopt;
}

std::optional<TextProblem> take_unit(Scanner& scanner, std::int64_t& nanos) {
    const std::size_t at = scanner.offset();
    const std::string_view word = scanner.take_while(Scanner::is_letter);
    if (word.empty()) {
        return TextProblem{at, "a unit of time is expected here: s, min, hour, day, week"};
    }
    std::vector<std::string_view> known;
    for (const Unit& unit : units) {
        if (unit.name == word) {
            nanos = unit.nanos;
            return std::nullopt;
        }
        known.push_back(unit.name);
    }
    const std::string_view meant = nearest_word(word, known);
    if (word == "month" || word == "months" || word == "year" || word == "years") {
        return TextProblem{at, cat("a ", word.starts_with("month") ? "month" : "year",
                                   " has no fixed length; say 30 days, 365 days")};
    }
    return TextProblem{at, cat("unknown unit of time '", word, "'",
                               meant.empty() ? "" : cat("; did you mean '", meant, "'?"))};
}

std::optional<TextProblem> take_period(Scanner& scanner, Nanos& period) {
    const std::size_t at = scanner.offset();
    std::uint64_t times = 1;
    std::int64_t nanos = 0;
    if (scanner.at_digit()) {
        if (auto problem = take_whole(scanner, times)) {
            return problem;
        }
    }
    if (auto problem = take_unit(scanner, nanos)) {
        return problem;
    }
    if (times == 0) {
        return TextProblem{at, "a period is longer than 0"};
    }
    if (times > static_cast<std::uint64_t>(max_period.count() / nanos)) {
        return TextProblem{at, "a period is at most 3653 days"};
    }
    period = Nanos{static_cast<std::int64_t>(times) * nanos};
    if (!scanner.at_end()) {
        return TextProblem{scanner.offset(), "nothing more is expected here"};
    }
    return std::nullopt;
}

}  // namespace

std::optional<TextProblem> parse_rate(std::string_view text, Rate& rate) {
    Scanner scanner(text);
    const std::size_t amount_at = scanner.offset();
    if (!scanner.at_end() && Scanner::is_letter(text[amount_at])) {
        rate.attribute = std::string(scanner.take_while([](char c) {
            return Scanner::is_letter(c) || Scanner::is_digit(c) || c == '_' || c == '-' ||
                   c == '.';
        }));
        if (rate.attribute.find('.') == std::string::npos) {
            return TextProblem{amount_at,
                               "a rate starts with a whole number or an attribute such as "
                               "credential.rate_limit_per_min"};
        }
    } else if (auto problem = take_whole(scanner, rate.amount)) {
        return problem;
    }
    const std::size_t at = scanner.offset();
    if (!scanner.take('/') && scanner.take_while(Scanner::is_letter) != "per") {
        return TextProblem{at, "a rate reads 60/min or 60 per minute"};
    }
    return take_period(scanner, rate.period);
}

std::optional<TextProblem> parse_period(std::string_view text, Nanos& period) {
    Scanner scanner(text);
    return take_period(scanner, period);
}

}  // namespace ration
