#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "cli/print_problems.h"
#include "workbench/http_test_bed.h"
#include "workbench/test_run.h"

namespace ration {

namespace {

struct TestArguments {
    std::vector<std::string> files;
    bool http = false;
};

int run_tests(const TestArguments& arguments) {
    const TestBedKind kind = arguments.http ? over_http() : in_process();
    TestTally total;
    bool readable = true;
    for (const std::string& path : arguments.files) {
        Problems problems;
        const auto file = load_test_file(path, problems);
        print_errors(problems);
        if (!file) {
            readable = false;
            continue;
        }
        const TestTally tally = run_test_file(*file, kind, std::cout);
        total.passed += tally.passed;
        total.failed += tally.failed;
        total.skipped += tally.skipped;
    }
    std::cout << summary(total) << '\n';
    if (!readable) {
        return 2;
    }
    return total.failed == 0 ? 0 : 1;
}

}  // namespace

void add_test_command(CLI::App& app, int& exit_code) {
    CLI::App* command =
        app.add_subcommand("test", "Run test files (YAML cases) against their policies");
    auto arguments = std::make_shared<TestArguments>();
    command->add_option("FILE", arguments->files, "Test files")->required();
    command->add_flag("--http", arguments->http,
                      "Through the real gateway over loopback sockets, on a clock moved by hand; "
                      "cases that cannot run so are skipped with the reason");
    command->callback([arguments, &exit_code] { exit_code = run_tests(*arguments); });
}

}  // namespace ration
