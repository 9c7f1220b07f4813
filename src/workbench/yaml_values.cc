#include "workbench/yaml_values.h"

#include <algorithm>

#include "base/text.h"
#include "nlohmann/json.hpp"
#include "request/header.h"
#include "server/http/fields.h"
#include "workbench/instant.h"
#include "workbench/json_cursor.h"
#include "workbench/message_check.h"

namespace ration {

namespace {

// NOLINTNEXTLINE(misc-no-recursion): as deep as YAML may nest (max_yaml_depth).
void append_json(const YamlNode& node, std::string& out) {
    switch (node.kind) {
        case YamlNode::Kind::null:
            out += "null";
            break;
        case YamlNode::Kind::scalar: {
            const bool plain = !node.quoted && nlohmann::json::accept(node.scalar);
            out += plain ? node.scalar : json_quoted(node.scalar);
            break;
        }
        case YamlNode::Kind::sequence:
            out += '[';
            for (const YamlNode* item : node.items) {
                out += out.back() == '[' ? "" : ",";
                append_json(*item, out);
            }
            out += ']';
            break;
        case YamlNode::Kind::mapping:
            out += '{';
            for (const YamlNode::Entry& entry : node.entries) {
                out += &entry == &node.entries.front() ? "" : ",";
                out += cat(json_quoted(entry.key->scalar), ":");
                append_json(*entry.value, out);
            }
            out += '}';
            break;
    }
}

void add_field(Reader& reader, const std::string& name, const YamlNode& value, Fields& fields) {
    if (!value.is_scalar()) {
        reader.error(value.at,
                     cat("the value of header ", name, " is text, not ", value.kind_name()));
        return;
    }
    if (const std::string wrong = wrong_field(name, value.scalar); !wrong.empty()) {
        reader.error(value.at, wrong);
        return;
    }
    fields.emplace_back(name, http::trimmed(value.scalar));
}

}  // namespace

std::string yaml_to_json(const YamlNode& node) {
    std::string out;
    append_json(node, out);
    return out;
}

std::string read_body(const YamlNode& node) {
    return node.is_scalar() ? node.scalar : yaml_to_json(node);
}

void remove_field(Fields& fields, std::string_view name) {
    std::erase_if(fields,
                  [name](const auto& field) { return equal_ignoring_case(field.first, name); });
}

void read_fields(Reader& reader, const YamlNode& node, Fields& fields) {
    if (!reader.any_mapping(node, "headers")) {
        return;
    }
    for (const YamlNode::Entry& entry : node.entries) {
        const std::string& name = entry.key->scalar;
        remove_field(fields, name);
        if (const std::string wrong = wrong_field(name, ""); !wrong.empty()) {
            reader.error(entry.key->at, wrong);
            continue;
        }
        if (entry.value->kind == YamlNode::Kind::null) {
            continue;
        }
        for (const YamlNode* value : Reader::items(*entry.value)) {
            add_field(reader, name, *value, fields);
        }
    }
}

std::optional<Nanos> read_span(Reader& reader, const YamlNode& node, std::string_view what) {
    const auto text = reader.text(node, what);
    if (!text) {
        return std::nullopt;
    }
    const auto span = parse_span(*text);
    if (!span.ok()) {
        reader.error(node.at, std::string(span.status().message()));
        return std::nullopt;
    }
    return *span;
}

}  // namespace ration
