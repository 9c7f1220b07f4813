// What a call costs beside bare libcurl: the same small answer over one kept connection on
// loopback, in interleaved rounds. The server has a core of its own. Prints one JSON object:
//   {"ration": {"ns": median per call}, "libcurl": {"ns": ...}}
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "ration/client.h"

namespace {

constexpr int rounds = 15;
constexpr int calls = 2000;

void use_core(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Answers every request on every connection, one thread each; ends with the process.
int start_server() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener, 8) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        std::exit(1);
    }
    std::thread([listener] {
        use_core(1);
        while (true) {
            const int peer = accept(listener, nullptr, nullptr);
            const int on = 1;
            setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            std::thread([peer] {
                use_core(1);
                static const std::string answer =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 30 Nov 2026 "
                    "00:00:00 GMT\r\n"
                    "X-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: "
                    "1795996860\r\n"
                    "Content-Length: 16\r\n\r\n{\"available\":42}";
                char bytes[4096];
                while (recv(peer, bytes, sizeof bytes, 0) > 0) {  // a request is one packet here
                    static_cast<void>(send(peer, answer.data(), answer.size(), MSG_NOSIGNAL));
                }
                close(peer);
            }).detach();
        }
    }).detach();
    return ntohs(address.sin_port);
}

std::size_t append(char* data, std::size_t size, std::size_t count, void* text) {
    static_cast<std::string*>(text)->append(data, size * count);
    return size * count;
}

template <typename Ask>
double nanoseconds_per_call(Ask ask) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
        if (!ask()) {
            std::exit(1);
        }
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    return took.count() / calls;
}

double median(std::vector<double> figures) {
    std::sort(figures.begin(), figures.end());
    return figures[figures.size() / 2];
}

}  // namespace

int main() {
    const std::string url =
        "http://127.0.0.1:" + std::to_string(start_server()) + "/v1/availability?day=1";
    use_core(0);
    CURL* handle = curl_easy_init();
    curl_slist* lines = curl_slist_append(nullptr, "Authorization: Bearer pk_demo_lisbon");
    std::string body;
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROXY, "");
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &append);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
    const auto bare = [&] {
        body.clear();
        curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
        curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines);
        long status = 0;
        const bool good = curl_easy_perform(handle) == CURLE_OK;
        curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
        return good && status == 200 && body.size() == 16;
    };
    ration::ClientOptions options;
    options.proxy = "";
    auto client = ration::Client::create(options);
    const auto ours = [&] {
        ration::ClientRequest request;
        request.url = url;
        request.headers = {{"Authorization", "Bearer pk_demo_lisbon"}};
        const ration::ClientResult result = (*client)->call(std::move(request));
        return result.status == 200 && result.body.size() == 16;
    };
    std::vector<double> of_bare;
    std::vector<double> of_ours;
    for (int round = 0; round < rounds; ++round) {
        of_bare.push_back(nanoseconds_per_call(bare));
        of_ours.push_back(nanoseconds_per_call(ours));
    }
    std::printf("{\"ration\": {\"ns\": %.0f}, \"libcurl\": {\"ns\": %.0f}}\n", median(of_ours),
                median(of_bare));
    curl_easy_cleanup(handle);
    curl_slist_free_all(lines);
    std::fflush(stdout);
    std::_Exit(0);  // the server's threads go with the process
}
