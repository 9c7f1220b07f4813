// Asks a place where nobody listens, and is told so.
#include <cstdio>
#include <string>

#include "ration/client.h"

int main() {
    ration::ClientOptions options;
    options.policy.max_retries = 1;
    options.proxy = "";
    auto client = ration::Client::create(options);
    if (!client.ok()) {
        return 1;
    }
    ration::ClientRequest request;
    request.url = "http://127.0.0.1:1/";
    const ration::ClientResult result = (*client)->call(request);
    const std::string error = result.error ? std::string(name(*result.error)) : "none";
    std::printf("%s after %u attempts\n", error.c_str(), result.attempts);
    return error == "connect_failed" && result.attempts == 2 ? 0 : 1;
}
