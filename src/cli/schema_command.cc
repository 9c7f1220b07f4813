#include <iostream>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "policy/schema.h"

namespace ration {

void add_schema_command(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("schema", "Print the JSON Schema of policy files, for editors");
    command->callback([&exit_code] {
        std::cout << policy_schema();
        exit_code = 0;
    });
}

}  // namespace ration
