// `ration ledger ...`: a closed file is checked here; everything else is asked of the server that
// holds the file, through its admin listener.
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/admin_client.h"
#include "cli/commands.h"
#include "ration/ledger.h"

namespace ration {

namespace {

using Json = nlohmann::ordered_json;

constexpr int good = 0;
constexpr int no = 1;      // damaged, nothing to settle, settled otherwise
constexpr int failed = 2;  // could not be found out

struct LedgerArguments {
    AdminOptions admin;
    bool json = false;
    std::string file;
    std::int64_t attempt = 0;
    bool written = false;
    bool not_written = false;
    std::uint64_t after = 0;
    std::uint64_t limit = 100;
    std::string quota;
    std::vector<std::string> of;
    std::string objects;
};

int check(const LedgerArguments& arguments) {
    const absl::Status status = check_sqlite_ledger(arguments.file);
    const bool found_out = status.ok() || status.code() == absl::StatusCode::kDataLoss ||
                           status.code() == absl::StatusCode::kFailedPrecondition;
    const std::string message(status.message());
    if (!found_out) {
        std::cerr << message << '\n';
        return failed;
    }
    if (arguments.json) {
        Json findings = Json::array();
        for (std::size_t at = 0; at < message.size();) {
            const std::size_t end = std::min(message.find('\n', at), message.size());
            findings.push_back(message.substr(at, end - at));
            at = end + 1;
        }
        std::cout << Json({{"file", arguments.file}, {"good", status.ok()}, {"findings", findings}})
                         .dump(2, ' ', false, Json::error_handler_t::replace)
                  << '\n';
    } else if (status.ok()) {
        std::cout << "good\n";
    } else {
        std::cerr << message << '\n';
    }
    return status.ok() ? good : no;
}

// Asks; prints the body as it is with --json, else by `print`. What the server refuses goes to
// standard error.
template <typename Print>
int ask(const LedgerArguments& arguments, const AdminQuestion& question, const Print& print) {
    const absl::StatusOr<AdminReply> reply = ask_admin(arguments.admin, question);
    if (!reply.ok()) {
        std::cerr << reply.status().message() << '\n';
        return failed;
    }
    const Json body = Json::parse(reply->body, nullptr, false);
    if (reply->status == 200 && body.is_object()) {
        if (arguments.json) {
            std::cout << reply->body;
        } else {
            print(body);
        }
        return good;
    }
    if (arguments.json && body.is_object()) {
        std::cout << reply->body;
    }
    const bool told = body.is_object() && body.contains("error") && body["error"].is_object();
    std::cerr << (told ? body["error"].value("message", "") : cat("answered ", reply->status))
              << '\n';
    return reply->status == 404 || reply->status == 409 ? no : failed;
}

std::string plain(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

// "workspace=ws_1, address=203.0.113.7"
std::string whose(const Json& of) {
    std::string text;
    if (of.is_structured()) {
        for (const auto& [name, value] : of.items()) {
            text += cat(text.empty() ? "" : ", ", of.is_object() ? name + "=" : "", plain(value));
        }
    }
    return text;
}

void print_numbers(const Json& numbers, const std::string& prefix = "") {
    for (const auto& [name, value] : numbers.items()) {
        if (value.is_object()) {
            print_numbers(value, prefix + name + ".");
        } else if (!value.is_null()) {
            std::cout << prefix << name << ' ' << plain(value) << '\n';
        }
    }
}

void print_doubts(const Json& page) {
    for (const Json& doubt : page["doubts"]) {
        std::cout << plain(doubt["attempt"]) << "  started " << plain(doubt["started"])
                  << "  expires " << plain(doubt["expires"]);
        if (const Json& key = doubt["key"]; key.is_object() && key.contains("key")) {
            std::cout << "  key " << plain(key["key"]) << " (" << plain(key["credential"]) << ", "
                      << whose(key["of"]) << ')';
        }
        for (const Json& place : doubt["places"]) {
            std::cout << "  place of " << plain(place["rule"]) << " (" << whose(place["of"]) << ')';
        }
        std::cout << '\n';
    }
    if (!page["next"].is_null()) {
        std::cout << "more with --after " << plain(page["next"]) << '\n';
    }
}

int doubts(const LedgerArguments& arguments) {
    return ask(
        arguments,
        {.path = cat("/v1/ledger/doubts?after=", arguments.after, "&limit=", arguments.limit)},
        print_doubts);
}

int settle(const LedgerArguments& arguments) {
    if (arguments.written == arguments.not_written) {
        std::cerr << "settle ATTEMPT as what? --written or --not-written\n";
        return failed;
    }
    const Json body{{"outcome", arguments.written ? "written" : "not_written"}};
    return ask(arguments,
               {.method = "POST",
                .path = cat("/v1/ledger/doubts/", arguments.attempt),
                .body = body.dump()},
               [](const Json& settled) {
                   std::cout << "attempt " << plain(settled["attempt"]) << " is settled as "
                             << (settled["outcome"] == "written" ? "written" : "not written")
                             << (settled["changed"] == true ? "" : ", as it was before") << '\n';
               });
}

// The ids in a file, one a line; "-" is standard input.
bool read_ids(const std::string& path, Json& ids) {
    std::ifstream file;
    if (path != "-") {
        file.open(path);
    }
    std::istream& lines = path == "-" ? std::cin : file;
    if (!lines) {
        std::cerr << path << ": cannot be read\n";
        return false;
    }
    ids = Json::array();
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) {
            ids.push_back(line);
        }
    }
    return true;
}

int quota(const LedgerArguments& arguments) {
    AdminQuestion question{.path = cat("/v1/ledger/quotas?quota=", query_text(arguments.quota))};
    for (const std::string& part : arguments.of) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos) {
            std::cerr << "'" << part << "' says not whose quota it is: account=acc_1\n";
            return failed;
        }
        question.path +=
            cat("&", query_text(part.substr(0, equals)), "=", query_text(part.substr(equals + 1)));
    }
    if (!arguments.objects.empty()) {
        Json body;
        if (!read_ids(arguments.objects, body["objects"])) {
            return failed;
        }
        question.method = "PUT";
        question.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return ask(arguments, question, [](const Json& shown) {
        std::cout << plain(shown["quota"]) << " (" << whose(shown["of"])
                  << "): " << plain(shown["level"]) << " of "
                  << (shown["at_most"].is_null() ? "unknown" : plain(shown["at_most"])) << '\n';
        for (const Json& object : shown["objects"]) {
            std::cout << plain(object) << '\n';
        }
    });
}

}  // namespace

void add_ledger_command(CLI::App& app, int& exit_code) {
    CLI::App* ledger = app.add_subcommand(
        "ledger", "Check a ledger file, and see and settle what a running server's ledger holds");
    ledger->require_subcommand(1);
    const auto arguments = std::make_shared<LedgerArguments>();
    const auto add = [&](const char* name, const char* help, auto run) {
        CLI::App* command = ledger->add_subcommand(name, help);
        command->add_flag("--json", arguments->json, "Print JSON");
        command->callback([run, arguments, &exit_code] { exit_code = run(*arguments); });
        return command;
    };
    CLI::App* checks = add("check", "Whether a closed file is a sound ledger", check);
    checks->add_option("FILE", arguments->file, "The file; no server may hold it")->required();
    CLI::App* numbers =
        add("stats", "Sizes, rows, queue, commits and what is in doubt", [](const auto& given) {
            return ask(given, {.path = "/v1/ledger"},
                       [](const Json& body) { print_numbers(body); });
        });
    CLI::App* lists = add("doubts", "Attempts whose outcome is unknown", doubts);
    lists->add_option("--after", arguments->after, "Those with a larger number");
    lists->add_option("--limit", arguments->limit, "How many at most, up to 1000");
    CLI::App* settles = add("settle", "Settle a doubt as written or not", settle);
    settles->add_option("ATTEMPT", arguments->attempt, "Its number")->required();
    settles->add_flag("--written", arguments->written, "The upstream has done it");
    settles->add_flag("--not-written", arguments->not_written, "It has not");
    CLI::App* quotas = add("quota", "A quota's level and objects", quota);
    quotas->add_option("QUOTA", arguments->quota, "Its name in the policy")->required();
    quotas->add_option("WHOSE", arguments->of, "Whose it is: account=acc_1")->required();
    quotas->add_option("--objects", arguments->objects,
                       "State the objects that exist: a file of ids, one a line, or -");
    for (CLI::App* command : {numbers, lists, settles, quotas}) {
        add_admin_options(*command, arguments->admin);
    }
}

}  // namespace ration
