// Which pattern serves a path, at a cost that does not grow with the number of patterns.
//
// A tree with one level per segment: a node's children are its literals, at most one `{x}` and at
// most one `**`. Matching walks it depth first in that order and takes the first place that has a
// pattern for the method. Since the order of the walk is the order of specificity, the first is the
// most specific; a branch that ends without one is left again, so `GET /a/b` is found under
// `/a/{x}` when `/a/b` only has a POST. A node has one path from the root, hence is visited at most
// once: no path can make the walk long.
//
// Literals are compared with their escapes undone, on both sides: "%3A" in a path is the ":" of the
// pattern, as it is for the server behind.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/text.h"
#include "policy/keys.h"
#include "policy/policy.h"
#include "policy/problems.h"
#include "request/path.h"

namespace ration {

// One pattern as written: where it ends in the tree, and what its parameters are called.
struct RouteTable::Pattern {
    std::string method;  // "ANY" for every method
    bool trailing_slash = false;
    RouteIndex route = no_route;
    std::vector<std::string> names;
};

struct RouteTable::Node {
    std::vector<std::pair<std::string, std::unique_ptr<Node>>> literals;  // sorted
    std::unique_ptr<Node> parameter;
    std::vector<Pattern> here;  // patterns that end at this node
    std::vector<Pattern> rest;  // patterns that go on with `**`

    [[nodiscard]] const Node* literal(std::string_view text) const {
        const auto at = std::lower_bound(
            literals.begin(), literals.end(), text,
            [](const auto& entry, std::string_view key) { return entry.first < key; });
        return at != literals.end() && at->first == text ? at->second.get() : nullptr;
    }

    Node& make_literal(std::string text) {
        auto at = std::lower_bound(
            literals.begin(), literals.end(), text,
            [](const auto& entry, const std::string& key) { return entry.first < key; });
        if (at == literals.end() || at->first != text) {
            at = literals.emplace(at, std::move(text), std::make_unique<Node>());
        }
        return *at->second;
    }
};

namespace {

constexpr std::string_view any_method = "ANY";

bool is_method(std::string_view text) {
    return !text.empty() && text.size() <= max_method_bytes &&
           absl::ascii_isupper(static_cast<unsigned char>(text.front())) &&
           std::all_of(text.begin(), text.end(), [](char c) {
               const auto byte = static_cast<unsigned char>(c);
               return absl::ascii_isupper(byte) || absl::ascii_isdigit(byte) || c == '-' ||
                      c == '_';
           });
}

bool is_parameter_name(std::string_view text) {
    return !text.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
           });
}

// The pieces of a pattern, checked but not yet in the tree.
struct Parsed {
    std::string method;
    std::vector<std::string> segments;  // literals with their escapes undone; "" for a parameter
    std::vector<std::string> names;
    bool rest = false;
    bool trailing_slash = false;
};

// A literal as the tree compares it; empty `error` on success.
std::string literal_text(std::string_view segment, std::string& error) {
    if (segment.find_first_of("{}*") != std::string_view::npos) {
        error = cat("'", segment, "': a segment is a literal, '{name}' or, as the last, '**'");
        return {};
    }
    std::string spelled = "/";  // as a client has to send it
    for (const char c : segment) {
        constexpr std::string_view digits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            spelled += c;
        } else {
            spelled += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    std::vector<char> buffer(3 * spelled.size());
    const auto normal = normal_target(spelled, buffer);
    if (!normal.ok() || normal->path == "/" || normal->has_query) {
        error = cat("'", segment, "' can never stand in a path that is let in");
        return {};
    }
    std::string decoded(segment.size(), '\0');
    decoded.resize(percent_decoded(segment, decoded).size());
    return decoded;
}

std::string parse_segment(std::string_view segment, bool last, Parsed& parsed) {
    if (segment == "**") {
        parsed.rest = true;
        return last ? "" : "'**' stands for the rest of the path: nothing may follow it";
    }
    if (segment.starts_with('{') && segment.ends_with('}')) {
        const std::string_view name = segment.substr(1, segment.size() - 2);
        if (!is_parameter_name(name)) {
            return cat("'", segment,
                       "': a parameter's name is letters, digits, '_' and '-', and does "
                       "not start with a digit");
        }
        if (std::find(parsed.names.begin(), parsed.names.end(), name) != parsed.names.end()) {
            return cat("two parameters are called '", name, "'");
        }
        if (parsed.names.size() == max_path_parameters) {
            return cat("more than ", max_path_parameters, " parameters");
        }
        parsed.names.emplace_back(name);
        parsed.segments.emplace_back();
        return {};
    }
    std::string error;
    parsed.segments.push_back(literal_text(segment, error));
    return error;
}

std::string parse_pattern(std::string_view pattern, Parsed& parsed) {
    if (pattern.size() > max_pattern_bytes) {
        return cat("a pattern of more than ", max_pattern_bytes, " bytes");
    }
    pattern = without_blanks(pattern);
    const std::size_t blank = pattern.find_first_of(" \t");
    const std::string_view method = pattern.substr(0, blank);
    if (blank == std::string_view::npos || method.starts_with('/')) {
        return "a route is a method (or ANY) and a path, such as 'GET /v1/things/{id}'";
    }
    if (!is_method(method)) {
        return cat("'", method, "' is not a method; methods are written in capitals");
    }
    const std::vector<std::string_view> known(method_words.words.begin(), method_words.words.end());
    const std::string_view meant = method == any_method ? method : nearest_word(method, known);
    if (!meant.empty() && meant != method) {
        return cat("unknown method '", method, "'; did you mean '", meant, "'?");
    }
    parsed.method = method;
    std::string_view path = without_blanks(pattern.substr(blank));
    if (!path.starts_with('/')) {
        return cat("the path '", path, "' does not start with '/'");
    }
    path.remove_prefix(1);
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const bool last = slash == std::string_view::npos;
        if (parsed.segments.size() == max_pattern_segments) {
            return cat("more than ", max_pattern_segments, " segments");
        }
        if (slash == 0) {
            return "an empty segment ('//'): paths have none";
        }
        if (std::string error = parse_segment(path.substr(0, slash), last, parsed);
            !error.empty()) {
            return error;
        }
        path.remove_prefix(last ? path.size() : slash + 1);
        parsed.trailing_slash = !last && path.empty();
    }
    return {};
}

// How well a pattern's method fits: 0 not at all; the larger the better.
int method_fit(std::string_view pattern, std::string_view method) {
    if (pattern == method) {
        return 3;
    }
    if (pattern == any_method) {
        return 1;
    }
    return method == "HEAD" && pattern == "GET" ? 2 : 0;
}

}  // namespace

// One walk through the tree for one path.
class RouteTable::Walk {
public:
    // An empty `method` fits every pattern.
    Walk(std::string_view method, bool slash_distinct, std::string_view path)
        : method_(method), distinct_(slash_distinct) {
        path.remove_prefix(1);
        slash_ = path.empty() || path.ends_with('/');
        path_ = path;
    }

    // The best pattern for the path from `at` on, under `node`.
    const Pattern* find(const Node& node, std::size_t at) {
        if (at >= path_.size()) {
            const Pattern* found = best(node.here, true);
            return found != nullptr ? found : best(node.rest, false);
        }
        const std::size_t end = std::min(path_.find('/', at), path_.size());
        const std::string_view segment = path_.substr(at, end - at);
        if (const Node* child = literal(node, segment)) {
            if (const Pattern* found = find(*child, end + 1)) {
                return found;
            }
        }
        if (node.parameter) {
            values_[count_++] = segment;
            if (const Pattern* found = find(*node.parameter, end + 1)) {
                return found;
            }
            --count_;
        }
        return best(node.rest, false);
    }

    [[nodiscard]] RouteMatch result(const Pattern& pattern) const {
        RouteMatch match;
        match.route = pattern.route;
        match.parameter_count = static_cast<std::uint8_t>(pattern.names.size());
        for (std::size_t i = 0; i < pattern.names.size(); ++i) {
            match.names[i] = pattern.names[i];
            match.values[i] = values_[i];
        }
        return match;
    }

private:
    [[nodiscard]] const Pattern* best(const std::vector<Pattern>& patterns, bool ends_here) const {
        const Pattern* found = nullptr;
        int fit = 0;
        for (const Pattern& pattern : patterns) {
            if (ends_here && distinct_ && pattern.trailing_slash != slash_) {
                continue;
            }
            const int candidate = method_.empty() ? 1 : method_fit(pattern.method, method_);
            if (candidate > fit) {
                fit = candidate;
                found = &pattern;
            }
        }
        return found;
    }

    static const Node* literal(const Node& node, std::string_view segment) {
        if (node.literals.empty()) {
            return nullptr;
        }
        if (segment.find('%') == std::string_view::npos) {
            return node.literal(segment);
        }
        std::array<char, max_pattern_bytes + 1> decoded;  // what is cut is longer than any literal
        return node.literal(percent_decoded(segment, decoded));
    }

    std::string_view method_;
    std::string_view path_;  // without its first slash
    bool distinct_;
    bool slash_ = false;
    std::size_t count_ = 0;
    std::array<std::string_view, max_path_parameters> values_;
};

std::string_view RouteMatch::parameter(std::string_view name) const {
    for (std::size_t i = 0; i < parameter_count; ++i) {
        if (names[i] == name) {
            return values[i];
        }
    }
    return {};
}

RouteTable::RouteTable() : root_(std::make_unique<Node>()) {}
RouteTable::~RouteTable() = default;
RouteTable::RouteTable(RouteTable&&) noexcept = default;
RouteTable& RouteTable::operator=(RouteTable&&) noexcept = default;

void RouteTable::set_trailing_slash_distinct(bool distinct) {
    slash_distinct_ = distinct;
}

std::string RouteTable::add(std::string_view pattern, RouteIndex route) {
    if (full()) {
        return cat("more than ", max_routes, " patterns of routes");
    }
    Parsed parsed;
    if (std::string error = parse_pattern(pattern, parsed); !error.empty()) {
        return error;
    }
    Node* node = root_.get();
    for (std::string& segment : parsed.segments) {
        if (!segment.empty()) {
            node = &node->make_literal(std::move(segment));
            continue;
        }
        if (!node->parameter) {
            node->parameter = std::make_unique<Node>();
        }
        node = node->parameter.get();
    }
    // The root is "/" with and without its slash.
    const bool slash = parsed.trailing_slash || node == root_.get();
    std::vector<Pattern>& patterns = parsed.rest ? node->rest : node->here;
    for (const Pattern& other : patterns) {
        if (other.method == parsed.method &&
            (parsed.rest || !slash_distinct_ || other.trailing_slash == slash)) {
            return cat("'", pattern, "' is the same method and path as an earlier route");
        }
    }
    patterns.push_back({std::move(parsed.method), slash, route, std::move(parsed.names)});
    ++pattern_count_;
    return {};
}

RouteMatch RouteTable::match(std::string_view method, std::string_view path) const {
    if (!path.starts_with('/') || method.empty()) {
        return {};
    }
    Walk walk(method, slash_distinct_, path);
    const Pattern* found = walk.find(*root_, 0);
    return found != nullptr ? walk.result(*found) : RouteMatch{};
}

bool RouteTable::path_exists(std::string_view path) const {
    return path.starts_with('/') && Walk({}, slash_distinct_, path).find(*root_, 0) != nullptr;
}

}  // namespace ration
