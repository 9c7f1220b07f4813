#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/print_problems.h"
#include "workbench/instant.h"
#include "workbench/replay.h"

namespace ration {

namespace {

struct ReplayArguments {
    std::string policy;
    std::string directory;
    std::string input = "-";
    std::string upstream_timeout = "60s";
};

int run_replay(const ReplayArguments& arguments) {
    ReplayOptions options;
    const auto timeout = parse_span(arguments.upstream_timeout);
    if (!timeout.ok() || *timeout <= Nanos(0)) {
        std::cerr << "--upstream-timeout: not a span of time above 0: "
                  << arguments.upstream_timeout << '\n';
        return 2;
    }
    options.upstream_timeout = *timeout;
    Problems problems;
    auto rules = load_rules(arguments.policy, arguments.directory, problems);
    print_errors(problems);
    if (!rules) {
        return 2;
    }
    options.rules = *std::move(rules);
    std::ios::sync_with_stdio(false);
    if (arguments.input == "-") {
        options.input_name = "stdin";
        return replay(options, std::cin, std::cout, std::cerr) ? 0 : 2;
    }
    options.input_name = arguments.input;
    std::ifstream file(arguments.input, std::ios::binary);
    std::error_code unknown;
    if (!file || std::filesystem::is_directory(arguments.input, unknown)) {
        std::cerr << Problem{arguments.input, {}, "cannot be read"}.text() << '\n';
        return 2;
    }
    return replay(options, file, std::cout, std::cerr) ? 0 : 2;
}

}  // namespace

void add_replay_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand(
        "replay",
        "Put requests through a policy on a virtual clock, from fresh state: JSON lines in, "
        "JSON lines out");
    auto arguments = std::make_shared<ReplayArguments>();
    command->add_option("--policy", arguments->policy, "The policy file")->required();
    command->add_option("--directory", arguments->directory,
                        "The directory of keys and entities (without: nobody is known)");
    command
        ->add_option("--upstream-timeout", arguments->upstream_timeout,
                     "How long an upstream may take before the answer is 504")
        ->capture_default_str();
    command->add_option("INPUT", arguments->input, "Requests, one JSON object a line (-: stdin)")
        ->capture_default_str();
    command->callback([arguments, &exit_code] { exit_code = run_replay(*arguments); });
}

}  // namespace ration
