// The `ration` command: what stands on the command line goes to one of commands.h.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "policy/problems.h"

namespace {

// Says so when the first word is neither an option nor a command, with the command likely meant.
bool known_first_word(const CLI::App& app, const std::string& word) {
    if (word.starts_with('-')) {
        return true;
    }
    std::vector<std::string> texts;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
        texts.push_back(command->get_name());
    }
    if (std::find(texts.begin(), texts.end(), word) != texts.end()) {
        return true;
    }
    const std::vector<std::string_view> names(texts.begin(), texts.end());
    const std::string_view meant = ration::nearest_word(word, names);
    std::cerr << "ration: no command '" << word << '\'';
    if (!meant.empty()) {
        std::cerr << "; did you mean '" << meant << "'?\n";
        return false;
    }
    std::cerr << "; there are";
    for (const std::string_view name : names) {
        std::cerr << (name == names.front() ? " " : ", ") << name;
    }
    std::cerr << '\n';
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Rate limits from a policy file: gateway, workbench and client.", "ration");
    app.set_version_flag("--version", "ration " RATION_VERSION);
    app.require_subcommand(1);
    int exit_code = 0;
    ration::add_serve_command(app, exit_code);
    ration::add_check_command(app, exit_code);
    ration::add_test_command(app, exit_code);
    ration::add_replay_command(app, exit_code);
    ration::add_schema_command(app, exit_code);
    ration::add_ledger_command(app, exit_code);
    ration::add_token_command(app, exit_code);
    ration::add_block_command(app, exit_code);
    ration::add_call_command(app, exit_code);
    if (argc > 1 && !known_first_word(app, argv[1])) {
        return 2;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        exit_code = app.exit(error) == 0 ? 0 : 2;
    }
    std::cout.flush();
    if (!std::cout && exit_code == 0) {
        std::cerr << "ration: the output could not be written\n";
        return 2;
    }
    return exit_code;
}
