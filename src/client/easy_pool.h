// libcurl's handles of one client: set up once, used again and again. Thread rule: whoever moves
// the client's sockets.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "ration/client.h"

namespace ration::client {

class EasyPool {
public:
    // `options` must outlive it.
    explicit EasyPool(const ClientOptions& options);
    ~EasyPool();
    EasyPool(const EasyPool&) = delete;
    EasyPool& operator=(const EasyPool&) = delete;

    // nullptr when libcurl has no memory for one.
    [[nodiscard]] CURL* take();
    void put_back(CURL* handle);

private:
    static constexpr std::size_t most_kept = 64;
    const ClientOptions& options_;
    std::vector<CURL*> free_;
};

// What a transfer's failure means. `sent`: something of the request may have left this machine.
[[nodiscard]] AttemptError error_of(CURLcode code, bool sent);

}  // namespace ration::client
