// `ration token ...`: tokens are made, listed and revoked by the server that holds the ledger,
// through its admin listener.
#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/admin_answer.h"
#include "cli/admin_client.h"
#include "cli/commands.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

struct TokenArguments {
    AdminOptions admin;
    bool json = false;
    std::string kind;
    std::string user;
    std::string team;
    std::optional<std::int64_t> rate_limit_per_min;
    std::string name;
    std::vector<std::string> more;  // NAME=VALUE
    std::string owner;
    std::string after;
    std::uint64_t limit = 100;
    std::vector<std::string> ids;
};

std::string plain(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "never" : value.dump();
}

void print_token(const Json& token) {
    for (const auto& [name, value] : token.items()) {
        if (name != "secret" && !(value.is_string() && value.get<std::string>().empty())) {
            std::cout << name << "  " << plain(value) << '\n';
        }
    }
}

// The secret comes last and alone on its line.
void print_new_token(const Json& token) {
    print_token(token);
    std::cout << "secret, shown this once:\n" << plain(token.value("secret", Json())) << '\n';
}

void print_tokens(const Json& page) {
    for (const Json& token : page.at("tokens")) {
        std::string line;
        for (const auto& [name, value] : token.items()) {
            if (value.is_string() && value.get<std::string>().empty()) {
                continue;
            }
            line += cat(line.empty() ? "" : "  ", name == "id" ? "" : name + " ", plain(value));
        }
        std::cout << line << '\n';
    }
    if (!page.at("next").is_null()) {
        std::cout << "more with --after " << plain(page.at("next")) << '\n';
    }
}

// A number where it is one, else text.
Json value_of(const std::string& text) {
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? Json(number) : Json(text);
}

int create(const TokenArguments& arguments) {
    Json body = Json::object();
    const std::pair<const char*, const std::string&> texts[] = {{"kind", arguments.kind},
                                                                {"user", arguments.user},
                                                                {"team", arguments.team},
                                                                {"name", arguments.name}};
    for (const auto& [name, text] : texts) {
        if (!text.empty()) {
            body[name] = text;
        }
    }
    if (arguments.rate_limit_per_min) {
        body["rate_limit_per_min"] = *arguments.rate_limit_per_min;
    }
    for (const std::string& pair : arguments.more) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos || equals == 0) {
            std::cerr << "not NAME=VALUE: " << pair << '\n';
            return 2;
        }
        body[pair.substr(0, equals)] = value_of(pair.substr(equals + 1));
    }
    return ask_and_print(arguments.admin, arguments.json,
                         {.method = "POST",
                          .path = "/v1/tokens",
                          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)},
                         print_new_token);
}

int list(const TokenArguments& arguments) {
    std::string path = cat("/v1/tokens?limit=", arguments.limit);
    const std::pair<const char*, const std::string&> filters[] = {
        {"kind", arguments.kind}, {"owner", arguments.owner}, {"after", arguments.after}};
    for (const auto& [name, text] : filters) {
        if (!text.empty()) {
            path += cat("&", name, "=", query_text(text));
        }
    }
    return ask_and_print(arguments.admin, arguments.json, {.path = path}, print_tokens);
}

int revoke(const TokenArguments& arguments) {
    int worst = 0;
    for (const std::string& id : arguments.ids) {
        const AdminQuestion question{.method = "DELETE",
                                     .path = cat("/v1/tokens/", query_text(id))};
        worst = std::max(worst,
                         ask_and_print(arguments.admin, arguments.json, question,
                                       [&](const Json&) { std::cout << id << " is revoked\n"; }));
    }
    return worst;
}

using Act = int (*)(const TokenArguments&);

CLI::App* add_act(CLI::App& tokens, const std::shared_ptr<TokenArguments>& arguments,
                  const char* name, const char* description, std::pair<Act, int*> act) {
    CLI::App* command = tokens.add_subcommand(name, description);
    add_admin_options(*command, arguments->admin);
    command->add_flag("--json", arguments->json, "Print the server's JSON");
    command->callback([arguments, act] { *act.second = act.first(*arguments); });
    return command;
}

}  // namespace

void add_token_command(CLI::App& app, int& exit_code) {
    CLI::App* tokens = app.add_subcommand("token", "Make, list and revoke a server's tokens.");
    tokens->require_subcommand(1);
    const auto arguments = std::make_shared<TokenArguments>();
    CLI::App* make = add_act(*tokens, arguments, "create",
                             "Make a token. Its secret is shown this once.", {&create, &exit_code});
    make->add_option("--user", arguments->user, "The user it belongs to");
    make->add_option("--team", arguments->team, "The team it belongs to");
    make->add_option("--kind", arguments->kind, "Its kind, where the owner does not tell");
    make->add_option("--rate-limit-per-min", arguments->rate_limit_per_min,
                     "Its ceiling per minute, fixed from now on");
    make->add_option("--name", arguments->name, "What people call it");
    make->add_option("more", arguments->more,
                     "What else the policy says such a token has, as NAME=VALUE");
    CLI::App* show =
        add_act(*tokens, arguments, "list", "List tokens, without secrets.", {&list, &exit_code});
    show->add_option("--kind", arguments->kind, "Of that kind only");
    show->add_option("--owner", arguments->owner, "Of that user or team only");
    show->add_option("--after", arguments->after, "Those behind this id");
    show->add_option("--limit", arguments->limit, "At most so many")->capture_default_str();
    CLI::App* end =
        add_act(*tokens, arguments, "revoke", "Revoke tokens: nobody is let in with them any more.",
                {&revoke, &exit_code});
    end->add_option("ids", arguments->ids, "Their ids")->required();
}

}  // namespace ration
