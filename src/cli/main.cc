// The `ration` command: what stands on the command line goes to one of commands.h.
#include "CLI/CLI.hpp"
#include "cli/commands.h"

int main(int argc, char** argv) {
    CLI::App app("Rate limits from a policy file: gateway and workbench.", "ration");
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
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return exit_code;
}
