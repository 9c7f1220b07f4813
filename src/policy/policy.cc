#include "policy/policy.h"

#include "policy/check_words.h"
#include "policy/policy_reader.h"
#include "policy/yaml_source.h"

namespace ration {

void PolicyReader::read(const YamlNode& root) {
    if (!reader_.mapping(root, policy_keys)) {
        return;
    }
    read_head(root);
    if (const YamlNode* routes = root.find("routes")) {
        read_routes(*routes);
    }
    read_identify(root.find("identify"));
    if (const YamlNode* cors = root.find("cors")) {
        read_cors(*cors);
    }
    read_answers(root);
    refusal_used_.resize(policy_.refusals.size());
    if (const YamlNode* limits = root.find("limits")) {
        read_limits(*limits);
    }
    if (const YamlNode* strikes = root.find("strikes")) {
        read_strikes(*strikes);
    }
    read_durable(root);
    note_body_routes();
    if (!over_bound_) {
        check_reach();
    }
}

void PolicyReader::read_head(const YamlNode& root) {
    if (const YamlNode* name = root.find("policy")) {
        if (const auto text = reader_.text(*name, "the policy's name")) {
            policy_.name = *text;
            if (!is_identifier(*text)) {
                reader_.error(name->at,
                              "the policy's name is letters, digits, '_' and '-', at most 64");
            }
        }
    }
    if (const YamlNode* unmatched = root.find("unmatched")) {
        policy_.forward_unmatched =
            reader_.word(*unmatched, "word for unmatched", unmatched_words) == std::size_t{1};
    }
    if (const YamlNode* slash = root.find("trailing_slash")) {
        policy_.table.set_trailing_slash_distinct(
            reader_.word(*slash, "word for trailing_slash", trailing_slash_words) ==
            std::size_t{1});
    }
}

std::shared_ptr<const Policy> Policy::parse(std::string_view file, std::string_view text,
                                            Environment environment, Problems& problems,
                                            const Directory* directory) {
    const Problems::Mark before = problems.mark();
    const auto document = YamlDocument::parse(file, text, problems);
    if (document == nullptr) {
        return nullptr;
    }
    auto policy = std::make_shared<Policy>();
    policy->file = std::string(file);
    Reader reader(file, problems);
    PolicyReader(*policy, environment, reader).read(document->root());
    if (directory != nullptr) {
        check_words(*policy, *directory, problems);
    }
    problems.sort_from(before);
    return problems.errors().size() == before.errors ? policy : nullptr;
}

std::shared_ptr<const Policy> Policy::load(const std::string& path, Environment environment,
                                           Problems& problems, const Directory* directory) {
    std::string text;
    if (!read_file(path, text, problems)) {
        return nullptr;
    }
    return parse(path, text, environment, problems, directory);
}

}  // namespace ration
