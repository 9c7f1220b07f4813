// The commands of `ration`, one file each. Each adds itself to the command line; when it is the one
// that was asked for, it runs and says how it ended in `exit_code`: 0 good, 1 the answer is no, 2
// wrong use or wrong input; `call` has more (cli/call/ending.h).
#pragma once

namespace CLI {
class App;
}

namespace ration {

void add_serve_command(CLI::App& app, int& exit_code);
void add_check_command(CLI::App& app, int& exit_code);
void add_test_command(CLI::App& app, int& exit_code);
void add_replay_command(CLI::App& app, int& exit_code);
void add_schema_command(CLI::App& app, int& exit_code);
void add_ledger_command(CLI::App& app, int& exit_code);
void add_token_command(CLI::App& app, int& exit_code);
void add_block_command(CLI::App& app, int& exit_code);
void add_call_command(CLI::App& app, int& exit_code);

}  // namespace ration
