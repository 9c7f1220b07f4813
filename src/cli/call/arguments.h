// What `ration call` was asked for, and the client and request made of it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ration/client.h"

namespace CLI {
class App;
}

namespace ration {

inline constexpr unsigned max_parallel = 256;

struct CallArguments {
    std::string url;
    std::string method;
    std::vector<std::string> headers;
    std::optional<std::string> data;
    std::string key;
    std::string max_wait, deadline, timeout;
    std::optional<unsigned> retries;
    std::vector<int> retry_statuses;
    std::vector<std::string> retry_types;
    std::string bucket = "path";
    bool follow_to_get = false;
    std::optional<std::string> proxy;
    std::string ca_file, certificate, certificate_key;
    bool http1 = false;

    std::string output;
    bool include = false, stream = false, verbose = false;

    std::string each, results;
    unsigned parallel = 8;
    std::string rate;
    unsigned burst = 1;
};

void add_call_options(CLI::App& command, CallArguments& arguments);

// InvalidArgument says which option is wrong, and why.
[[nodiscard]] absl::StatusOr<ClientOptions> client_options(const CallArguments& arguments);
// The request of the command line, the default of each job of a list.
[[nodiscard]] absl::StatusOr<ClientRequest> base_request(const CallArguments& arguments);

// Gives `request` a body, and a Content-Type if it has none: application/json for what begins like
// it, else the type of forms.
void set_body(ClientRequest& request, std::string bytes);

}  // namespace ration
