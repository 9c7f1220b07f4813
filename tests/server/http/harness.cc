#include "server/http/harness.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ration::testing {

const std::string_view open_policy = R"(
policy: open
unmatched: forward
routes:
  limited: ANY /limited
  slot: ANY /slot
cors: {origins: ["*"], expose: [Retry-After]}
identify:
  address: {header: X-Forwarded-For, trusted: [10.0.0.0/8]}
limits:
  - {name: few, routes: [limited], per: [address], token_bucket: 1/hour, refuse: too_many}
  - {name: one at a time, routes: [slot], per: [address], concurrency: 1, refuse: too_many}
refusals:
  too_many:
    status: 429
    headers: {Retry-After: "{retry_after}"}
    body: {error: {type: too_many, message: Too many requests.}}
error_shape: {error: {type: "{type}", message: "{message}"}}
)";

namespace {

constexpr auto patience = std::chrono::milliseconds(patience_ms);

GatewayOptions with_defaults(GatewayOptions options, std::uint16_t upstream_port) {
    if (options.listeners.empty()) {
        options.listeners.emplace_back();
    }
    if (options.threads == 0) {
        options.threads = 1;
    }
    // Tests push the clock while the system is connecting at its own pace.
    if (options.upstream.connect_timeout == GatewayOptions().upstream.connect_timeout) {
        options.upstream.connect_timeout = std::chrono::hours(24);
    }
    if (options.upstream.port == 0) {
        options.upstream.port = upstream_port;
    }
    return options;
}

}  // namespace

// ---- upstream ----

ScriptedUpstream::ScriptedUpstream() = default;

ScriptedUpstream::ScriptedUpstream(Script script) : script_(std::move(script)) {
    listen();
}

std::unique_ptr<ScriptedUpstream> ScriptedUpstream::raw(Raw per_connection) {
    auto upstream = std::unique_ptr<ScriptedUpstream>(new ScriptedUpstream());
    upstream->raw_ = std::move(per_connection);
    upstream->listen();
    return upstream;
}

void ScriptedUpstream::listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::listen(listener_, 1024);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
}

void ScriptedUpstream::accept_all() {
    for (;;) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        const std::lock_guard lock(mutex_);
        if (fd < 0 || stopping_) {
            if (fd >= 0) {
                ::close(fd);
            }
            return;
        }
        ++connections_;
        open_.push_back(fd);
        threads_.emplace_back([this, fd] { serve(fd); });
        changed_.notify_all();
    }
}

void ScriptedUpstream::serve(int fd) {
    {
        Conn connection = wrap ? Conn(fd, wrap(fd)) : Conn(fd);
        if (raw_) {
            raw_(connection);
        } else {
            while (std::optional<Message> request = connection.read()) {
                if (!request->whole) {
                    break;
                }
                {
                    const std::lock_guard lock(mutex_);
                    requests_.push_back(*request);
                    changed_.notify_all();
                }
                if (!script_(connection, *request)) {
                    break;
                }
            }
        }
        // Leaves the list before the descriptor is closed and its number used anew.
        const std::lock_guard lock(mutex_);
        open_.erase(std::remove(open_.begin(), open_.end(), fd), open_.end());
        changed_.notify_all();
    }
}

void ScriptedUpstream::stop_listening() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(stopping_, true)) {
            return;
        }
    }
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
}

void ScriptedUpstream::close_connections() {
    std::unique_lock lock(mutex_);
    for (const int fd : open_) {
        ::shutdown(fd, SHUT_RDWR);
    }
    changed_.wait_for(lock, patience, [this] { return open_.empty(); });
}

ScriptedUpstream::~ScriptedUpstream() {
    stop_listening();
    close_connections();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

std::vector<Message> ScriptedUpstream::requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
}

std::size_t ScriptedUpstream::connections() {
    const std::lock_guard lock(mutex_);
    return connections_;
}

bool ScriptedUpstream::wait_for_requests(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return requests_.size() >= count; });
}

ScriptedUpstream::Script answer_with(std::string body) {
    return answer_raw("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n\r\n" + body);
}

ScriptedUpstream::Script answer_raw(std::string bytes, bool keep) {
    return [bytes = std::move(bytes), keep](Conn& connection, const Message&) {
        return connection.send(bytes) && keep;
    };
}

// ---- reports ----

void Recorder::on_request(const RequestRecord& record) {
    const std::lock_guard lock(mutex_);
    seen_.push_back({.outcome = record.outcome,
                     .has_exchange = record.exchange != nullptr,
                     .id = std::string(record.id),
                     .method = std::string(record.method),
                     .target = std::string(record.target),
                     .detail = std::string(record.detail),
                     .status = record.status,
                     .upstream_status = record.upstream_status,
                     .request_bytes = record.request_bytes,
                     .response_bytes = record.response_bytes,
                     .total = record.total,
                     .upstream = record.upstream,
                     .tls = record.tls});
    changed_.notify_all();
}

std::vector<Seen> Recorder::wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return seen_.size() >= count; });
    return seen_;
}

std::size_t Recorder::count() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
}

// ---- gateway ----

GatewayWorld::GatewayWorld(std::uint16_t upstream_port, GatewayWorldOptions options)
    : world(options.policy, "") {
    auto started = Gateway::start(with_defaults(std::move(options.gateway), upstream_port),
                                  world.engine(), world.clock, recorder);
    if (!started.ok()) {
        ADD_FAILURE() << started.status();
        std::abort();
    }
    gateway = *std::move(started);
}

Message GatewayWorld::ask(std::string_view request) {
    Conn client = connect();
    client.send(request);
    std::optional<Message> answer = client.read(request.starts_with("HEAD "));
    return answer.value_or(Message{});
}

bool GatewayWorld::advance_until(const std::function<bool()>& done, Nanos step) {
    for (int i = 0; i < 2000; ++i) {
        if (done()) {
            return true;
        }
        world.clock.advance(step);
        ::poll(nullptr, 0, 5);
    }
    return false;
}

bool GatewayWorld::eventually(const std::function<bool()>& done) {
    for (int waited = 0; waited < patience_ms; waited += 2) {
        if (done()) {
            return true;
        }
        ::poll(nullptr, 0, 2);
    }
    return false;
}

std::string get(std::string_view path, std::string_view more_fields) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: api.test\r\n" +
           std::string(more_fields) + "\r\n";
}

std::string post(std::string_view path, std::string_view body, std::string_view more_fields) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: api.test\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + std::string(more_fields) + "\r\n" + std::string(body);
}

}  // namespace ration::testing
