// Asks a running server's admin listener, for the commands that speak with one.
//
// Blocking, over libcurl: http and https, no redirects. The token comes from a file or from the
// environment, never from the command line, which others on the machine can read. Errors:
// Unavailable when nobody answers, InvalidArgument for a token that cannot be had.
//
//   AdminOptions options;
//   add_admin_options(*command, options);                 // --admin, --token-file, --token-env
//   const auto reply = ask_admin(options, {.path = "/v1/ledger"});
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace ration {

struct AdminOptions {
    std::string url = "http://127.0.0.1:8081";
    std::string token_file;
    std::string token_env;
};

// The options must outlive the command's parsing.
void add_admin_options(CLI::App& command, AdminOptions& options);

struct AdminQuestion {
    std::string method = "GET";
    std::string path;  // with the query
    std::string body = {};
};

struct AdminReply {
    int status = 0;
    std::string body;
};

[[nodiscard]] absl::StatusOr<AdminReply> ask_admin(const AdminOptions& options,
                                                   const AdminQuestion& question);

// As a query's name or value.
[[nodiscard]] std::string query_text(const std::string& text);

}  // namespace ration
