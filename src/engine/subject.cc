#include "engine/subject.h"

#include <charconv>
#include <system_error>
#include <variant>

#include "request/body_field.h"
#include "request/path.h"

namespace ration {
namespace {

// Takes one character off a text with escapes; a broken escape stands for itself.
char next_decoded(std::string_view& text, PlusSign plus) {
    char c = text[0];
    std::size_t size = 1;
    if (c == '+' && plus == PlusSign::blank) {
        c = ' ';
    } else if (c == '%' && text.size() >= 3 && hex_value(text[1]) >= 0 && hex_value(text[2]) >= 0) {
        c = static_cast<char>(hex_value(text[1]) * 16 + hex_value(text[2]));
        size = 3;
    }
    text.remove_prefix(size);
    return c;
}

bool decodes_to(std::string_view text, std::string_view plain) {
    while (!text.empty() && !plain.empty()) {
        if (next_decoded(text, PlusSign::blank) != plain[0]) {
            return false;
        }
        plain.remove_prefix(1);
    }
    return text.empty() && plain.empty();
}

// What stands for a value that found no room: one value for all of them, so that nobody gets a
// key of their own by spelling at length.
constexpr std::string_view no_room = "\xff no room";

std::string_view decoded(std::string_view text, PlusSign plus, Scratch& scratch) {
    if (text.find_first_of(plus == PlusSign::blank ? "%+" : "%") == std::string_view::npos) {
        return text;
    }
    const std::span<char> room = scratch.room();
    std::size_t size = 0;
    while (!text.empty()) {
        if (size == room.size()) {
            return no_room;
        }
        room[size++] = next_decoded(text, plus);
    }
    return scratch.take(size);
}

// The first parameter of that name; names are compared decoded.
std::optional<std::string_view> query_parameter(std::string_view query, std::string_view name,
                                                Scratch& scratch) {
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
        const std::size_t equals = pair.find('=');
        if (!pair.empty() && decodes_to(pair.substr(0, equals), name)) {
            return equals == std::string_view::npos
                       ? std::string_view{}
                       : decoded(pair.substr(equals + 1), PlusSign::blank, scratch);
        }
    }
    return std::nullopt;
}

std::optional<std::string_view> header_value(const Exchange& exchange, std::string_view name) {
    const Header* header = find_header(exchange.request.headers, name);
    return header == nullptr ? std::nullopt : std::optional(header->value);
}

// Decoded: "a%3Ab" and "a:b" are one id to the server behind.
std::optional<std::string_view> path_parameter(const RouteMatch& route, std::string_view name,
                                               Scratch& scratch) {
    for (std::size_t i = 0; i < route.parameter_count; ++i) {
        if (route.names[i] == name) {
            return decoded(route.values[i], PlusSign::itself, scratch);
        }
    }
    return std::nullopt;
}

std::optional<std::string_view> body_value(const Exchange& exchange, std::string_view name,
                                           Scratch& scratch) {
    if (scratch.room().size() < max_body_field_bytes) {
        return no_room;
    }
    const auto type = header_value(exchange, "Content-Type");
    const auto value = body_field({exchange.request.body, type.value_or(std::string_view())}, name,
                                  scratch.room());
    return value && value->data() == scratch.room().data() ? scratch.take(value->size()) : value;
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
    const std::span<char> room = scratch.room();
    const auto end =
        std::to_chars(room.data(), room.data() + room.size(), std::get<std::int64_t>(*value));
    return end.ec == std::errc{} ? scratch.take(static_cast<std::size_t>(end.ptr - room.data()))
                                 : no_room;
}

// The place of that kind among the entities bound from the request, or -1.
int bound_place(const Policy& policy, std::string_view kind) {
    for (std::size_t i = 0; i < policy.bound_entities.size(); ++i) {
        if (policy.bound_entities[i].first == kind) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

}  // namespace

const AttributeValue* follow(const Directory& directory, const Entity* entity,
                             std::span<const std::string> path) {
    for (; entity != nullptr && path.size() > 1; path = path.subspan(1)) {
        const AttributeValue* next = entity->find(path[0]);
        const auto* id = next == nullptr ? nullptr : std::get_if<std::string>(next);
        entity = id == nullptr ? nullptr : directory.entity(path[0], *id);
    }
    return entity == nullptr || path.empty() ? nullptr : entity->find(path[0]);
}

void bind_entities(Exchange& exchange) {
    const auto& named = exchange.policy().bound_entities;
    exchange.bound.clear();
    exchange.bound_bytes = 0;
    Scratch scratch(exchange.scratch_room());
    for (const auto& [kind, selector] : named) {
        exchange.bound.push_back(key_part(exchange, selector, scratch));
    }
    exchange.bound_bytes = exchange.scratch_room().size() - scratch.room().size();
}

std::optional<std::string_view> entity_id(const Exchange& exchange, std::string_view kind) {
    if (const int place = bound_place(exchange.policy(), kind); place >= 0) {
        return exchange.bound[static_cast<std::size_t>(place)];
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
            return counted_method(exchange.method);
        case Selector::Source::address:
            return address_bytes(exchange.address);
        case Selector::Source::credential:
            return exchange.credential == nullptr
                       ? std::nullopt
                       : std::optional<std::string_view>(exchange.credential->key);
        case Selector::Source::entity:
            return entity_id(exchange, selector.name);
        case Selector::Source::attribute:
            return value_text(attribute(exchange, selector.path), scratch);
        case Selector::Source::path:
            return path_parameter(exchange.route, selector.name, scratch);
        case Selector::Source::query:
            return query_parameter(exchange.target.query, selector.name, scratch);
        case Selector::Source::header:
            return header_value(exchange, selector.name);
        case Selector::Source::body:
            return body_value(exchange, selector.name, scratch);
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
    if (bound_place(exchange.policy(), path[0]) >= 0) {
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
