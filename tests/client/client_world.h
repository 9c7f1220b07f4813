// What the transport tests share: a client with short waits, and what its hooks saw.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/text.h"
#include "gtest/gtest.h"
#include "ration/client.h"
#include "raw_server.h"

namespace ration::client {

// Waits of tests are short; what they are is judged on the virtual clock, not here.
inline ClientOptions quick_options() {
    ClientOptions options;
    options.policy.backoff_base = std::chrono::milliseconds(2);
    options.policy.retry_after_extra = std::chrono::milliseconds(2);
    options.policy.gate_guard = std::chrono::milliseconds(1);
    options.proxy = "";  // whatever the machine's environment says
    return options;
}

inline std::unique_ptr<Client> make_client(ClientOptions options = quick_options()) {
    auto client = Client::create(std::move(options));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? std::move(*client) : nullptr;
}

inline ClientRequest get(std::string url) {
    ClientRequest request;
    request.url = std::move(url);
    return request;
}

inline ClientRequest post(std::string url, std::string body) {
    ClientRequest request = get(std::move(url));
    request.method = "POST";
    request.body = RequestBody::text(std::move(body));
    return request;
}

inline void serve_ok(RawConnection& peer) {
    while (peer.read_request()) {
        peer.answer(200, "X-Note: hello\r\nContent-Type: text/plain\r\n", "ok");
    }
}

// Answers with these statuses in a row, the last for ever.
inline RawServer::Serve serve_statuses(std::vector<int> statuses, std::string fields = "") {
    const auto next = std::make_shared<std::atomic<std::size_t>>(0);
    return [=](RawConnection& peer) {
        while (peer.read_request()) {
            peer.answer(statuses[std::min((*next)++, statuses.size() - 1)], fields, "body");
        }
    };
}

inline std::string long_text(std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) {
        text += static_cast<char>('a' + i % 23);
    }
    return text;
}

inline RequestBody reading(const std::string& text, bool rewindable, bool sized) {
    const auto at = std::make_shared<std::size_t>(0);
    auto read = [text, at](std::span<char> into) {
        const std::size_t count =
            text.copy(into.data(), std::min<std::size_t>(into.size(), 1000), *at);
        *at += count;
        return static_cast<std::ptrdiff_t>(count);
    };
    const auto size = sized ? std::optional<std::uint64_t>(text.size()) : std::nullopt;
    if (!rewindable) {
        return RequestBody::stream(read, size);
    }
    return RequestBody::rewindable(
        read,
        [at] {
            *at = 0;
            return true;
        },
        size);
}

// Everything that hooks told, as text.
class Diary {
public:
    [[nodiscard]] ClientHooks hooks() {
        ClientHooks hooks;
        hooks.on_send = [this](const ClientHooks::Send& send) {
            note(cat("send ", send.attempt, " ", send.method, " ", send.url));
        };
        hooks.on_answer = [this](const ClientHooks::Answer& answer) {
            note(answer.error ? cat("error ", name(*answer.error)) : cat("answer ", answer.status));
        };
        hooks.on_wait = [this](const ClientHooks::Wait& wait) {
            note(cat("wait ", name(wait.source), " ", wait.reason));
        };
        hooks.on_end = [this](std::uint64_t, const ClientResult& result) {
            note(cat("end ", name(result.reason), result.idempotency_key));
        };
        return hooks;
    }
    [[nodiscard]] std::vector<std::string> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

private:
    void note(std::string line) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
    }
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

}  // namespace ration::client
