// Many callers on one client, for the tests against the real gateway.
//
//   client_driver THREADS KEY < jobs       one JSON object a line: method, url, body
//
// Prints one JSON object: how the calls ended, what was sent, the bodies of the successes.
#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"
#include "ration/client.h"

namespace {

using Json = nlohmann::json;

ration::ClientOptions patient_options() {
    ration::ClientOptions options;
    options.proxy = "";
    options.policy.max_retries = 60;
    options.policy.budget_capacity = 1'000'000;
    options.policy.total_deadline = std::chrono::minutes(4);
    options.policy.backoff_cap = std::chrono::seconds(1);
    options.policy.key_making = ration::KeyMaking::automatic;
    options.policy.retry_statuses = {429, 502, 503, 504};
    options.max_host_connections = 256;
    return options;
}

struct Crowd {
    std::vector<Json> jobs;
    std::string key;
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    Json endings = Json::object();
    Json bodies = Json::array();

    void work(ration::Client& client) {
        while (true) {
            const std::size_t index = next++;
            if (index >= jobs.size()) {
                return;
            }
            const Json& job = jobs[index];
            ration::ClientRequest request;
            request.method = job["method"];
            request.url = job["url"];
            request.headers = {{"Authorization", "Bearer " + key}};
            if (job.contains("body")) {
                request.headers.emplace_back("Content-Type", "application/json");
                request.body = ration::RequestBody::text(job["body"].dump());
            }
            const ration::ClientResult result = client.call(std::move(request));
            const std::string ending =
                result.error ? std::string(name(*result.error)) : std::to_string(result.status);
            const std::lock_guard lock(mutex);
            endings[ending] = endings.value(ending, 0) + 1;
            if (result.ok()) {
                bodies.push_back(result.body);
            }
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    Crowd crowd;
    crowd.key = argv[2];
    for (std::string line; std::getline(std::cin, line);) {
        crowd.jobs.push_back(Json::parse(line));
    }
    auto client = ration::Client::create(patient_options());
    if (!client.ok()) {
        return 2;
    }
    std::vector<std::thread> threads;
    for (int i = std::stoi(argv[1]); i > 0; --i) {
        threads.emplace_back([&] { crowd.work(**client); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const ration::ClientCounters counters = (*client)->counters();
    std::cout << Json{{"endings", crowd.endings},
                      {"sends", counters.sends},
                      {"retries", counters.retries},
                      {"bodies", crowd.bodies}}
                     .dump()
              << '\n';
    return 0;
}
