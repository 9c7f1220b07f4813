#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/policy_reader.h"

namespace ration {
namespace {

// Words that stand among route names elsewhere in the language.
constexpr std::array<std::string_view, 7> reserved_route_names{"else",  "any",   "rate", "burst",
                                                               "limit", "every", "count"};

struct SplitPattern {
    std::vector<std::string> methods;
    std::string_view path;  // starts with '/', unless there is none
};

// "GET,POST /x": methods stand before the first slash.
SplitPattern split_pattern(std::string_view text) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    SplitPattern split;
    split.path = text.substr(slash);
    for (const std::string_view method : split_text(trim(text.substr(0, slash)), ',')) {
        split.methods.emplace_back(trim(method));
    }
    return split;
}

}  // namespace

bool Route::has_parameter(std::string_view parameter) const {
    return std::find(parameters.begin(), parameters.end(), parameter) != parameters.end();
}

void PolicyReader::read_routes(const YamlNode& node) {
    if (!reader_.any_mapping(node, "routes")) {
        return;
    }
    if (node.entries.size() > max_routes) {
        too_many(node.at, cat("more than ", max_routes, " routes"));
    }
    for (const YamlNode::Entry& entry : node.entries) {
        read_route(entry);
    }
    for (const Route& route : policy_.routes) {
        route_names_.push_back(route.name);
    }
}

void PolicyReader::read_route(const YamlNode::Entry& entry) {
    const std::string& name = entry.key->scalar;
    if (!is_identifier(name)) {
        reader_.error(entry.key->at, "a route's name is letters, digits, '_' and '-', at most 64");
        return;
    }
    if (std::find(reserved_route_names.begin(), reserved_route_names.end(), name) !=
        reserved_route_names.end()) {
        reader_.error(entry.key->at,
                      cat("'", name, "' is a word of the language; name the route otherwise"));
        return;
    }
    const auto index = static_cast<RouteIndex>(policy_.routes.size());
    if (index == max_routes) {
        route_index_.emplace(name, max_routes - 1);
        return;
    }
    policy_.routes.push_back({name, entry.key->at, all_kinds, {}, {}, {}});
    route_index_.emplace(name, index);
    const YamlNode* patterns = entry.value;
    if (patterns->is_mapping()) {
        reader_.mapping(*patterns, route_keys);
        patterns = patterns->find("match");
    }
    if (patterns != nullptr) {
        add_patterns(*patterns, index);
    }
}

void PolicyReader::add_patterns(const YamlNode& node, RouteIndex route) {
    const auto patterns = reader_.words(node, "a route's pattern");
    if (node.is_sequence() && node.items.empty()) {
        reader_.error(node.at, "a route needs a pattern: GET /v1/things/{id}");
    }
    if (patterns.size() > max_patterns_per_route) {
        reader_.error(node.at, cat("more than ", max_patterns_per_route, " patterns"));
        return;
    }
    for (const YamlNode* pattern : patterns) {
        const SplitPattern split = split_pattern(pattern->scalar);
        for (const std::string& method : split.methods) {
            const std::string one = cat(method, " ", split.path);
            if (policy_.table.full()) {
                if (!over_bound_) {
                    too_many(pattern->at, cat("more than ", max_routes, " patterns of routes"));
                }
            } else if (const std::string why = policy_.table.add(one, route); !why.empty()) {
                reader_.error(pattern->at, why);
                continue;
            }
            policy_.routes[route].patterns.push_back(one);
            policy_.routes[route].methods.push_back(method);
        }
        note_parameters(split.path, route);
    }
}

void PolicyReader::note_parameters(std::string_view path, RouteIndex route) {
    for (const std::string_view segment : split_text(path, '/')) {
        if (segment.size() > 2 && segment.front() == '{') {  // "{id" is a slip, and its name known
            std::string name(segment.substr(1, segment.size() - (segment.back() == '}' ? 2 : 1)));
            if (!policy_.routes[route].has_parameter(name)) {
                policy_.routes[route].parameters.push_back(name);
            }
            path_parameters_.insert(std::move(name));
        }
    }
}

}  // namespace ration
