#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print_problems.h"
#include "policy/check.h"
#include "policy/yaml_source.h"
#include "server/config/serve_config.h"
#include "server/reload/rules.h"
#include "workbench/rules_loader.h"

namespace ration {

namespace {

struct CheckArguments {
    std::vector<std::string> files;
    std::string directory;
};

// A file with `entities:` or `credentials:` at its top and no `policy:` is a directory.
bool is_directory_file(const YamlNode& root) {
    return root.find("policy") == nullptr &&
           (root.find("entities") != nullptr || root.find("credentials") != nullptr);
}

// A serve.yaml names its upstream; a policy has none.
bool is_serve_file(const YamlNode& root) {
    return root.find("upstream") != nullptr;
}

// The settings, and the policy and directory they name, as `ration serve` would take them.
void check_serve_file(const std::string& path, Problems& problems) {
    const auto config = ServeConfig::load(path, process_environment, problems);
    if (!config) {
        return;
    }
    const auto rules = load_rule_files({.policy = config->policy,
                                        .directory = config->directory,
                                        .ledger = !config->ledger.empty(),
                                        .redis = config->redis.has_value()},
                                       process_environment, problems);
    if (rules) {
        check(*rules->policy, nullptr, problems);  // loading has looked at the directory
    }
}

// Read once: standard input cannot be read again.
struct PolicyText {
    std::string path;
    std::string text;
};

// The directory the policies are looked at with: the one asked for, else one among the files, else
// an empty one. Null: it has errors.
std::shared_ptr<const Directory> check_directories(const CheckArguments& arguments,
                                                   std::vector<PolicyText>& policies,
                                                   Problems& problems) {
    std::shared_ptr<const Directory> directory;
    bool named = !arguments.directory.empty();
    if (named) {
        directory = Directory::load(arguments.directory, problems);
    }
    for (const std::string& path : arguments.files) {
        std::string text;
        if (!read_file(path, text, problems)) {
            continue;
        }
        Problems told_below;
        const auto document = YamlDocument::parse(path, text, told_below);
        if (document != nullptr && is_serve_file(document->root())) {
            check_serve_file(path, problems);
            continue;
        }
        if (document == nullptr || !is_directory_file(document->root())) {
            policies.push_back({path, std::move(text)});
            continue;
        }
        auto loaded = Directory::parse(path, text, problems);
        if (!named) {
            directory = std::move(loaded);
            named = true;
        }
    }
    return named ? directory : empty_directory();
}

int run_check(const CheckArguments& arguments) {
    Problems problems;
    std::vector<PolicyText> policies;
    const auto directory = check_directories(arguments, policies, problems);
    const bool unknown = directory == nullptr || directory->file().empty();
    for (const auto& [path, text] : policies) {
        if (const auto policy =
                Policy::parse(path, text, process_environment, problems, directory.get())) {
            check(*policy, unknown ? nullptr : directory.get(), problems);
        }
    }
    print_problems(problems);
    if (!problems.ok()) {
        return 1;
    }
    const std::size_t warnings = problems.warnings().size();
    std::cout << (warnings == 0 ? std::string("good")
                                : cat("good, ", warnings, warnings == 1 ? " warning" : " warnings"))
              << '\n';
    return 0;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand(
        "check", "Say what is wrong with policies and directories, and what is worth a look");
    auto arguments = std::make_shared<CheckArguments>();
    command
        ->add_option("FILE", arguments->files,
                     "Policies, directories, and serve.yaml files with what they name")
        ->required();
    command->add_option("--directory", arguments->directory,
                        "The directory that the policies are checked with");
    command->callback([arguments, &exit_code] { exit_code = run_check(*arguments); });
}

}  // namespace ration
