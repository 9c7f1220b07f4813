#include "policy/schema.h"

#include <nlohmann/json.hpp>

#include "policy/keys.h"

namespace ration {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the tables

Json key_schema(const Key& key) {
    Json schema = Json::parse(key.schema);
    schema["description"] = key.meaning;
    return schema;
}

void add_mapping(const KeyTable& table, Json& schema) {
    schema["type"] = "object";
    schema["additionalProperties"] = false;
    Json required = Json::array();
    Json& properties = schema["properties"] = Json::object();
    for (const Key& key : table.keys) {
        if (!key.refused.empty()) {
            continue;
        }
        properties[std::string(key.name)] = key_schema(key);
        if (key.required) {
            required.push_back(key.name);
        }
    }
    if (!required.empty()) {
        schema["required"] = required;
    }
    for (const std::string_view key : table.exactly_one) {
        schema["oneOf"].push_back({{"required", {key}}});
    }
}

}  // namespace

std::string policy_schema() {
    Json schema;
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = "ration policy";
    add_mapping(policy_keys, schema);
    Json& definitions = schema["$defs"] = Json::object();
    for (const SharedShape& shape : all_shared_shapes()) {
        definitions[std::string(shape.name)] = Json::parse(shape.schema);
    }
    for (const WordList* list : all_word_lists()) {
        definitions[std::string(list->name)]["enum"] = list->words;
    }
    for (const KeyTable* table : all_key_tables()) {
        if (table != &policy_keys) {
            add_mapping(*table, definitions[std::string(table->name)]);
        }
    }
    return schema.dump(2) + "\n";
}

}  // namespace ration
