// `ration block ...`: who is blocked by a strike rule, and an end to it, through the admin listener
// of a running server.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/admin_answer.h"
#include "cli/admin_client.h"
#include "cli/commands.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

struct BlockArguments {
    AdminOptions admin;
    bool json = false;
    std::string subject;
    std::string rule;
    std::uint64_t limit = 1000;
};

void print_blocks(const Json& body) {
    for (const Json& block : body.at("blocks")) {
        std::string subject;
        for (const Json& part : block.at("subject")) {
            subject += cat(subject.empty() ? "" : ", ", part.get<std::string>());
        }
        std::cout << subject << "  " << block.at("rule").get<std::string>() << "  until "
                  << block.at("until").get<std::string>() << " (" << block.at("seconds_left").dump()
                  << " s left, level " << block.at("level").dump() << ")\n";
    }
}

int list(const BlockArguments& arguments) {
    return ask_and_print(arguments.admin, arguments.json,
                         {.path = cat("/v1/blocks?limit=", arguments.limit)}, print_blocks);
}

int lift(const BlockArguments& arguments) {
    Json body{{"subject", arguments.subject}};
    if (!arguments.rule.empty()) {
        body["rule"] = arguments.rule;
    }
    std::uint64_t lifted = 0;
    const int code = ask_and_print(
        arguments.admin, arguments.json,
        {.method = "POST",
         .path = "/v1/blocks/lift",
         .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)},
        [&](const Json& answer) {
            lifted = answer.value("lifted", std::uint64_t{0});
            std::cout << (lifted == 0 ? "nothing was blocked" : cat("lifted: ", lifted)) << '\n';
        });
    return code == 0 && lifted == 0 && !arguments.json ? 1 : code;
}

}  // namespace

void add_block_command(CLI::App& app, int& exit_code) {
    CLI::App* blocks =
        app.add_subcommand("block", "Show and lift the blocks of a server's strike rules.");
    blocks->require_subcommand(1);
    const auto arguments = std::make_shared<BlockArguments>();
    CLI::App* show = blocks->add_subcommand("list", "List who is blocked now.");
    CLI::App* end = blocks->add_subcommand("lift", "End a block, with what led to it.");
    for (CLI::App* command : {show, end}) {
        add_admin_options(*command, arguments->admin);
        command->add_flag("--json", arguments->json, "Print the server's JSON");
    }
    show->add_option("--limit", arguments->limit, "At most so many")->capture_default_str();
    show->callback([arguments, &exit_code] { exit_code = list(*arguments); });
    end->add_option("subject", arguments->subject, "The address or account that is blocked")
        ->required();
    end->add_option("--rule", arguments->rule, "By this rule only");
    end->callback([arguments, &exit_code] { exit_code = lift(*arguments); });
}

}  // namespace ration
