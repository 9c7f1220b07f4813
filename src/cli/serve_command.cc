// `ration serve FILE`: the gateway and its admin listener, until a signal ends them.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "cli/print_problems.h"
#include "server/process/log.h"
#include "server/process/signals.h"
#include "server/server.h"
#include "workbench/rules_loader.h"

namespace ration {

namespace {

constexpr int stopped_at_once = 1;

// Serves signals until one says stop; then drains while a second one ends the process at once.
int serve_until_stopped(Server& server, Log& log) {
    for (;;) {
        switch (Signals::next()) {
            case Signal::reload:
                static_cast<void>(server.reload(ReloadCause::signal));
                break;
            case Signal::reopen_logs:
                server.reopen_logs();
                break;
            case Signal::stop: {
                log.info("stopping: what runs is finished, nothing new is taken");
                std::thread([&log] {
                    while (Signals::next() != Signal::stop) {
                    }
                    log.warning("stopped at once by a second signal");
                    std::_Exit(stopped_at_once);
                }).detach();
                return server.drain() ? 0 : 1;
            }
        }
    }
}

int run_serve(const std::string& file, const std::string& ledger) {
    Signals::block();
    Problems problems;
    auto config = ServeConfig::load(file, process_environment, problems);
    print_problems(problems);
    if (!config.has_value()) {
        return 1;
    }
    if (!ledger.empty()) {
        config->ledger = ledger;
        config->ledger_given = true;
    }
    const SystemClock clock;
    // Not destroyed: the thread that waits for a second signal may use it to the last moment.
    Log& log = *open_process_log().release();
    auto server = Server::start(*config, {.clock = clock,
                                          .log = log,
                                          .environment = process_environment,
                                          .version = RATION_VERSION});
    if (!server.ok()) {
        std::cerr << server.status().message() << '\n';
        return 1;
    }
    const int exit_code = serve_until_stopped(**server, log);
    server->reset();  // writes the last log lines
    log.info(exit_code == 0 ? "stopped"
                            : "stopped; requests were cut when the drain time was over");
    return exit_code;
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("serve", "Serve a policy in front of an API, as a serve.yaml says");
    auto file = std::make_shared<std::string>();
    command->add_option("FILE", *file, "The serve.yaml (docs/operating.md)")->required();
    auto ledger = std::make_shared<std::string>();
    command->add_option("--ledger", *ledger, "File of the durable ledger, instead of serve.yaml's");
    command->callback([file, ledger, &exit_code] { exit_code = run_serve(*file, *ledger); });
}

}  // namespace ration
