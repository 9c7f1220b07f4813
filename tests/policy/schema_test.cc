// The committed JSON Schema is the one the parser's tables give, and the two agree: what the parser
// takes fits the schema, and a key that the parser does not know, the schema does not know either.
#include "policy/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "policy/case_file.h"
#include "policy/policy.h"
#include "policy/yaml_source.h"

namespace ration {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string source_dir = RATION_SOURCE_DIR;

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// As an editor sees the YAML: plain numbers and booleans are typed.
Json to_json(const YamlNode& node) {
    Json out;
    switch (node.kind) {
        case YamlNode::Kind::null:
            return nullptr;
        case YamlNode::Kind::scalar: {
            const Json parsed = Json::parse(node.scalar, nullptr, false);
            const bool typed = !node.quoted && (parsed.is_number() || parsed.is_boolean());
            return typed ? parsed : Json(node.scalar);
        }
        case YamlNode::Kind::sequence:
            out = Json::array();
            for (const YamlNode* item : node.items) {
                out.push_back(to_json(*item));
            }
            return out;
        case YamlNode::Kind::mapping:
            out = Json::object();
            for (const YamlNode::Entry& entry : node.entries) {
                out[entry.key->scalar] = to_json(*entry.value);
            }
            return out;
    }
    return out;
}

bool has_type(const Json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number()) || (type == "null" && value.is_null());
}

// As much of JSON Schema 2020-12 as the policy's schema uses; an unknown keyword fails the test.
class Validator {
public:
    explicit Validator(Json root) : root_(std::move(root)) {}

    bool valid(const Json& value) { return valid(value, root_); }

private:
    bool valid(const Json& value, const Json& schema) {
        bool good = true;
        for (const auto& [keyword, rule] : schema.items()) {
            good = keyword_holds(keyword, rule, value, schema) && good;
        }
        return good;
    }

    bool keyword_holds(const std::string& keyword, const Json& rule, const Json& value,
                       const Json& schema) {
        if (keyword == "$ref") {
            const Json::json_pointer pointer(rule.get<std::string>().substr(1));
            return valid(value, root_.at(pointer));
        }
        if (keyword == "type") {
            const Json types = rule.is_array() ? rule : Json::array({rule});
            return std::any_of(types.begin(), types.end(), [&](const Json& type) {
                return has_type(value, type.get<std::string>());
            });
        }
        if (keyword == "anyOf" || keyword == "oneOf") {
            const auto matches = std::count_if(
                rule.begin(), rule.end(), [&](const Json& choice) { return valid(value, choice); });
            return keyword == "oneOf" ? matches == 1 : matches >= 1;
        }
        if (keyword == "enum") {
            return std::find(rule.begin(), rule.end(), value) != rule.end();
        }
        if (keyword == "not") {
            return !valid(value, rule);
        }
        if (value.is_object() && keyword == "propertyNames") {
            return std::all_of(value.items().begin(), value.items().end(),
                               [&](const auto& member) { return valid(member.key(), rule); });
        }
        if (value.is_object() && (keyword == "properties" || keyword == "additionalProperties" ||
                                  keyword == "required")) {
            return object_holds(keyword, rule, value, schema);
        }
        if (value.is_array() && keyword == "items") {
            return std::all_of(value.begin(), value.end(),
                               [&](const Json& item) { return valid(item, rule); });
        }
        return bound_holds(keyword, rule, value);
    }

    bool object_holds(const std::string& keyword, const Json& rule, const Json& value,
                      const Json& schema) {
        bool good = true;
        if (keyword == "required") {
            return std::all_of(rule.begin(), rule.end(), [&](const Json& name) {
                return value.contains(name.get<std::string>());
            });
        }
        for (const auto& [name, member] : value.items()) {
            const bool declared =
                schema.contains("properties") && schema["properties"].contains(name);
            if (keyword == "properties" && declared) {
                good = valid(member, rule[name]) && good;
            } else if (keyword == "additionalProperties" && !declared) {
                good = (rule.is_boolean() ? rule.get<bool>() : valid(member, rule)) && good;
            }
        }
        return good;
    }

    static bool bound_holds(const std::string& keyword, const Json& rule, const Json& value) {
        if (keyword == "minimum") {
            return !value.is_number() || value >= rule;
        }
        if (keyword == "maximum") {
            return !value.is_number() || value <= rule;
        }
        if (keyword == "minLength") {
            return !value.is_string() || value.get<std::string>().size() >= rule;
        }
        if (keyword == "maxLength") {
            return !value.is_string() || value.get<std::string>().size() <= rule;
        }
        if (keyword == "minItems") {
            return !value.is_array() || value.size() >= rule;
        }
        if (keyword == "pattern") {
            return !value.is_string() || has_prefix_of(rule.get<std::string>(), value);
        }
        const bool silent = keyword == "description" || keyword == "title" ||
                            keyword == "$schema" || keyword == "$defs" || keyword == "items" ||
                            keyword == "properties" || keyword == "additionalProperties" ||
                            keyword == "required" || keyword == "propertyNames";
        EXPECT_TRUE(silent) << "the schema uses " << keyword;
        return silent;
    }

    // The patterns in use say how a text begins.
    static bool has_prefix_of(const std::string& pattern, const std::string& text) {
        static const std::map<std::string, std::vector<std::string>> beginnings = {
            {R"(^env\.)", {"env."}}, {"^/", {"/"}}, {R"(^(body|path)\.)", {"body.", "path."}}};
        const auto known = beginnings.find(pattern);
        EXPECT_NE(known, beginnings.end()) << "the schema uses the pattern " << pattern;
        return known != beginnings.end() &&
               std::any_of(known->second.begin(), known->second.end(),
                           [&](const std::string& begin) { return text.starts_with(begin); });
    }

    Json root_;
};

bool schema_takes(const std::string& text) {
    Problems problems;
    const auto document = YamlDocument::parse("p", text, problems);
    return document != nullptr &&
           Validator(Json::parse(policy_schema())).valid(to_json(document->root()));
}

std::vector<fs::path> good_policies() {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(source_dir + "/tests/policy/data/good")) {
        found.push_back(entry.path());
    }
    for (const auto& entry : fs::recursive_directory_iterator(source_dir + "/examples")) {
        if (entry.path().filename() == "policy.yaml") {
            found.push_back(entry.path());
        }
    }
    return found;
}

TEST(PolicySchema, TheCommittedFileIsWhatTheTablesGive) {
    EXPECT_EQ(contents(source_dir + "/docs/policy.schema.json"), policy_schema())
        << "write the output of policy_schema() to docs/policy.schema.json";
}

TEST(PolicySchema, TakesEveryPolicyThatTheParserTakes) {
    const auto policies = good_policies();
    EXPECT_GE(policies.size(), 4U);
    for (const fs::path& path : policies) {
        Problems problems;
        const std::string text = contents(path);
        EXPECT_NE(Policy::parse(path.string(), text, nullptr, problems), nullptr)
            << problems.status();
        EXPECT_EQ(problems.warnings().size(), path.filename() == "minimal.yaml" ? 1U : 0U) << path;
        EXPECT_TRUE(schema_takes(text)) << path;
    }
}

// A message about a key is one that the schema gives too.
TEST(PolicySchema, RefusesTheKeysThatTheParserRefuses) {
    int seen = 0;
    for (const FileCase& refused :
         read_cases(source_dir + "/tests/policy/data/refused_policies.txt")) {
        const bool of_keys =
            std::any_of(refused.expected.begin(), refused.expected.end(), [](const auto& line) {
                return line.find("unknown key of") != std::string::npos ||
                       line.find("needs '") != std::string::npos ||
                       line.find("is not offered") != std::string::npos;
            });
        if (of_keys) {
            ++seen;
            EXPECT_FALSE(schema_takes(refused.text)) << refused.name;
        }
    }
    EXPECT_GE(seen, 8);
}

// Renaming any one key of a good policy makes parser and schema refuse it alike.
void rename_each_key(const Json& node, const Json::json_pointer& place, const Json& whole,
                     int& renamed) {
    if (!node.is_object()) {
        return;
    }
    for (const auto& [name, member] : node.items()) {
        rename_each_key(member, place / name, whole, renamed);
        Json changed = whole;
        Json& parent = place.empty() ? changed : changed[place];
        parent[name + "_qqqqqqqq"] = parent[name];
        parent.erase(name);
        const std::string text = changed.dump();
        Problems problems;
        const auto policy = Policy::parse("p", text, nullptr, problems);
        const bool about_keys = std::any_of(
            problems.errors().begin(), problems.errors().end(),
            [](const auto& error) { return error.reason.starts_with("unknown key of"); });
        if (about_keys) {
            ++renamed;
            EXPECT_FALSE(schema_takes(text))
                << "the schema takes " << place.to_string() << "/" << name;
        } else if (policy != nullptr) {
            EXPECT_TRUE(schema_takes(text))
                << "the schema refuses " << place.to_string() << "/" << name;
        }
    }
}

TEST(PolicySchema, AgreesOnEveryRenamedKey) {
    int renamed = 0;
    for (const fs::path& path : good_policies()) {
        Problems problems;
        const auto document = YamlDocument::parse("p", contents(path), problems);
        ASSERT_NE(document, nullptr);
        const Json whole = to_json(document->root());
        rename_each_key(whole, Json::json_pointer(), whole, renamed);
        for (std::size_t i = 0; whole.contains("limits") && i < whole["limits"].size(); ++i) {
            const Json::json_pointer place = Json::json_pointer("/limits") / i;
            rename_each_key(whole[place], place, whole, renamed);
        }
    }
    EXPECT_GE(renamed, 100);
}

}  // namespace
}  // namespace ration
