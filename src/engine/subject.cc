#include "engine/subject.h"

#include <charconv>
#include <variant>

namespace ration {
namespace {

// The value of a hexadecimal digit, or -1.
int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Decodes as a form does ("+" is a blank); a broken escape stands for itself. Returns the length,
// never more than `text`'s.
std::size_t decode(std::string_view text, char* out) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            out[size++] = static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out[size++] = text[i] == '+' ? ' ' : text[i];
        }
    }
    return size;
}

std::optional<std::string_view> decoded(std::string_view text, Scratch& scratch) {
    if (text.find_first_of("%+") == std::string_view::npos) {
        return text;
    }
    char* out = scratch.take(text.size());
    return out == nullptr ? text : std::string_view(out, decode(text, out));
}

// The first parameter of that name; names are compared decoded.
std::optional<std::string_view> query_parameter(std::string_view query, std::string_view name,
                                                Scratch& scratch) {
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
        const std::size_t equals = pair.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
        Scratch names = scratch;
        if (!pair.empty() && decoded(pair.substr(0, equals), names) == name) {
            return decoded(value, scratch);
        }
    }
    return std::nullopt;
}

std::optional<std::string_view> path_parameter(const RouteMatch& route, std::string_view name) {
    for (std::size_t i = 0; i < route.parameter_count; ++i) {
        if (route.names[i] == name) {
            return route.values[i];
        }
    }
    return std::nullopt;
}

std::string_view address_bytes(const CallerAddress& address) {
    if (!address.known) {
        return {};
    }
    return {reinterpret_cast<const char*>(address.address.bytes.data()),
            address.address.v4 ? std::size_t{4} : std::size_t{16}};
}

std::optional<std::string_view> value_text(const AttributeValue* value, Scratch& scratch) {
    if (value == nullptr) {
        return std::nullopt;
    }
    if (const auto* text = std::get_if<std::string>(value)) {
        return *text;
    }
    if (const auto* yes = std::get_if<bool>(value)) {
        return *yes ? "true" : "false";
    }
    constexpr std::size_t longest = 20;  // -2^63
    char* out = scratch.take(longest);
    if (out == nullptr) {
        return std::nullopt;
    }
    const char* end = std::to_chars(out, out + longest, std::get<std::int64_t>(*value)).ptr;
    return std::string_view(out, static_cast<std::size_t>(end - out));
}

// Follows path[1], path[2], ... from `entity` and returns the attribute that the last one names.
const AttributeValue* follow(const Directory& directory, const Entity* entity,
                             std::span<const std::string> path) {
    for (; entity != nullptr && path.size() > 1; path = path.subspan(1)) {
        const AttributeValue* next = entity->find(path[0]);
        const auto* id = next == nullptr ? nullptr : std::get_if<std::string>(next);
        entity = id == nullptr ? nullptr : directory.entity(path[0], *id);
    }
    return entity == nullptr || path.empty() ? nullptr : entity->find(path[0]);
}

const Selector* bound_entity(const Policy& policy, std::string_view kind) {
    for (const auto& [name, selector] : policy.bound_entities) {
        if (name == kind) {
            return &selector;
        }
    }
    return nullptr;
}

}  // namespace

std::optional<std::string_view> entity_id(const Exchange& exchange, std::string_view kind) {
    if (const Selector* bound = bound_entity(exchange.policy(), kind)) {
        switch (bound->source) {
            case Selector::Source::path:
                return path_parameter(exchange.route, bound->name);
            case Selector::Source::header: {
                const Header* header = find_header(exchange.request.headers, bound->name);
                return header == nullptr ? std::nullopt : std::optional(header->value);
            }
            case Selector::Source::query: {
                Scratch none({});
                return query_parameter(exchange.target.query, bound->name, none);
            }
            default:
                return std::nullopt;
        }
    }
    const Entity* entity =
        exchange.credential == nullptr ? nullptr : exchange.credential->entity(kind);
    return entity == nullptr ? std::nullopt : std::optional<std::string_view>(entity->id);
}

std::optional<std::string_view> key_part(const Exchange& exchange, const Selector& selector,
                                         Scratch& scratch) {
    switch (selector.source) {
        case Selector::Source::route: {
            const RouteIndex route = exchange.route.route;
            return route == no_route ? std::string_view{}
                                     : std::string_view(exchange.policy().routes[route].name);
        }
        case Selector::Source::method:
            return counted_method(exchange.request.method);
        case Selector::Source::address:
            return address_bytes(exchange.address);
        case Selector::Source::credential:
            return exchange.credential == nullptr
                       ? std::nullopt
                       : std::optional<std::string_view>(exchange.credential->fingerprint);
        case Selector::Source::entity:
            return entity_id(exchange, selector.name);
        case Selector::Source::attribute:
            return value_text(attribute(exchange, selector.path), scratch);
        case Selector::Source::path:
            return path_parameter(exchange.route, selector.name);
        case Selector::Source::query:
            return query_parameter(exchange.target.query, selector.name, scratch);
        case Selector::Source::header: {
            const Header* header = find_header(exchange.request.headers, selector.name);
            return header == nullptr ? std::nullopt : std::optional(header->value);
        }
    }
    return std::nullopt;
}

const AttributeValue* attribute(const Exchange& exchange, const std::vector<std::string>& path) {
    if (path.size() < 2) {
        return nullptr;
    }
    const Directory& directory = *exchange.rules->directory;
    const Credential* credential = exchange.credential;
    const Entity* root = nullptr;
    if (bound_entity(exchange.policy(), path[0]) != nullptr) {
        const auto id = entity_id(exchange, path[0]);
        root = id ? directory.entity(path[0], *id) : nullptr;
    } else if (credential != nullptr) {
        root = path[0] == "credential" ? &credential->self : credential->entity(path[0]);
    }
    return follow(directory, root, std::span(path).subspan(1));
}

std::int64_t amount_of(const AttributeValue& value) {
    const auto* number = std::get_if<std::int64_t>(&value);
    return number == nullptr ? 0 : *number;
}

std::string_view counted_method(std::string_view method) {
    return method == "HEAD" ? std::string_view("GET") : method;
}

}  // namespace ration
