// The `ration` command: what stands on the command line goes to one of commands.h.
#include <algorithm>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/call/shown.h"
#include "cli/commands.h"
#include "cli/empty_value.h"
#include "cli/unknown_word.h"

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
    ration::refuse_odd_values(app);
    app.failure_message([](const CLI::App* command, const CLI::Error& error) {
        return ration::shown_text(CLI::FailureMessage::simple(command, error));
    });
    const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
    if (const std::string unknown = ration::unknown_word(app, words.subspan(1)); !unknown.empty()) {
        std::cerr << ration::shown_text(unknown) << '\n';
        return 2;
    }
    try {
        std::vector<std::string> spelt = ration::spell_empty_values(app, words.subspan(1));
        std::reverse(spelt.begin(), spelt.end());  // as the parser takes them
        app.parse(std::move(spelt));
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
