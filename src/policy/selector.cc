#include "policy/selector.h"

#include <array>

#include "base/text.h"
#include "policy/reader.h"

namespace ration {
namespace {

struct NamedSource {
    std::string_view name;
    Selector::Source source;
};

constexpr std::array single_words{
    NamedSource{"route", Selector::Source::route},
    NamedSource{"method", Selector::Source::method},
    NamedSource{"address", Selector::Source::address},
    NamedSource{"credential", Selector::Source::credential},
};

// What stands before the dot, when it is not an entity kind.
constexpr std::array request_words{
    NamedSource{"path", Selector::Source::path},
    NamedSource{"query", Selector::Source::query},
    NamedSource{"header", Selector::Source::header},
    NamedSource{"body", Selector::Source::body},
};

// An entity kind may be any word but these. (Slips are found by check_words, which knows the
// directory's kinds.)
std::optional<TextProblem> check_whole(std::string_view word) {
    for (const NamedSource& known : request_words) {
        if (word == known.name) {
            return TextProblem{0, cat("'", word, "' needs a name: ", word, ".x")};
        }
    }
    return std::nullopt;
}

std::optional<TextProblem> parse_word(std::string_view text, Selector& selector) {
    for (const NamedSource& word : single_words) {
        if (word.name == text) {
            selector.source = word.source;
            return std::nullopt;
        }
    }
    if (!is_identifier(text)) {
        return TextProblem{0,
                           "expected a word such as route, address or workspace, or a dotted name "
                           "such as account.plan, path.id, query.q, header.X-App, body.email"};
    }
    selector.source = Selector::Source::entity;
    selector.name = std::string(text);
    return check_whole(text);
}

std::optional<TextProblem> parse_attribute(std::string_view text, Selector& selector) {
    selector.source = Selector::Source::attribute;
    for (const std::string_view step : split_text(text, '.')) {
        selector.path.emplace_back(step);
    }
    if (selector.path.size() > max_attribute_steps) {
        return TextProblem{0, cat("an attribute has at most ", max_attribute_steps, " steps")};
    }
    std::size_t offset = 0;
    for (const std::string& step : selector.path) {
        if (!is_identifier(step)) {
            return TextProblem{offset, "a step of an attribute is a word"};
        }
        offset += step.size() + 1;
    }
    const std::string& first = selector.path.front();
    if (first == "route" || first == "method" || first == "address") {
        return TextProblem{0, cat("'", first, "' has no attributes")};
    }
    if (first == "cookie" || first == "env") {
        return TextProblem{0, cat("'", first, ".' cannot be used here")};
    }
    return first == "credential" ? std::nullopt : check_whole(first);
}

}  // namespace

std::optional<TextProblem> parse_selector(std::string_view text, Selector& selector) {
    const std::size_t dot = text.find('.');
    if (dot == std::string_view::npos) {
        return parse_word(text, selector);
    }
    const std::string_view before = text.substr(0, dot);
    const std::string_view after = text.substr(dot + 1);
    for (const NamedSource& word : request_words) {
        if (before != word.name) {
            continue;
        }
        selector.source = word.source;
        selector.name = std::string(after);
        return is_short_token(after)
                   ? std::nullopt
                   : std::optional(TextProblem{dot + 1, "a name is expected here"});
    }
    return parse_attribute(text, selector);
}

}  // namespace ration
