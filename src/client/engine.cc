// The outside of the engine: requests become calls, callers wait for them. How the driver moves the
// sockets is in engine_turn.cc.
#include "client/engine.h"

#include <algorithm>

#include "base/text.h"
#include "client/access.h"
#include "client/policy.h"
#include "wire/token.h"

namespace ration::client {
namespace {

constexpr std::size_t most_known_urls = 1024;

ClientOptions settled(ClientOptions options) {
    options.policy = within_bounds(std::move(options.policy));
    if (options.nested) {
        options.policy.max_retries = 0;
    }
    return options;
}

// Why the request cannot be sent; empty when it can.
std::string fault_of(const ClientRequest& request) {
    if (!is_token(request.method)) {
        return "no such method";
    }
    if (request.method == "HEAD" && BodyAccess::kind(request.body) != BodyKind::none) {
        return "a HEAD request has no body";
    }
    for (const auto& [name, value] : request.headers) {
        if (!is_token(name) || !is_field_value(value)) {
            return cat("'", name, "' cannot be sent as a header");
        }
    }
    return is_field_value(request.idempotency_key) ? "" : "the key cannot be sent as a header";
}

ClientResult wrong_request(std::string_view message) {
    ClientResult result;
    result.reason = StopReason::error_not_retryable;
    result.error = AttemptError::bad_request;
    result.message = message;
    return result;
}

}  // namespace

Engine::Engine(ClientOptions options)
    : options_(settled(std::move(options))),
      clock_(options_.clock ? options_.clock : std::make_shared<SystemClock>()),
      random_(options_.random ? options_.random : std::make_shared<SystemRandom>()),
      dispatcher_(options_, *random_),
      pool_(options_),
      multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_connections));
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS,
                      static_cast<long>(options_.max_host_connections));
}

Engine::~Engine() {
    {
        const Lock lock(mutex_);
        closing_ = true;
        for (const auto& [number, pending] : background_calls_) {
            cancels_.push_back(number);
        }
        background_work_.notify_all();
        curl_multi_wakeup(multi_);
    }
    if (background_.joinable()) {
        background_.join();
    }
    curl_multi_cleanup(multi_);
}

std::shared_ptr<const Url> Engine::known_url(const std::string& text) {
    {
        const Lock lock(mutex_);
        const auto found = urls_.find(text);
        if (found != urls_.end()) {
            return found->second;
        }
    }
    auto read = parse_url(text);
    if (!read) {
        return nullptr;
    }
    auto url = std::make_shared<const Url>(std::move(*read));
    const Lock lock(mutex_);
    if (urls_.size() >= most_known_urls) {
        urls_.clear();
    }
    urls_.emplace(text, url);
    return url;
}

bool Engine::prepare(Pending& pending) {
    ClientRequest& request = pending.request;
    pending.url = known_url(request.url);
    if (!pending.url) {
        pending.result =
            wrong_request("no such URL: http or https, without a user name, is what can be asked");
        return false;
    }
    if (const std::string fault = fault_of(request); !fault.empty()) {
        pending.result = wrong_request(fault);
        return false;
    }
    Call& call = pending.call;
    call.policy = &options_.policy;
    if (request.max_retries || request.max_server_wait || request.total_deadline ||
        request.attempt_timeout) {
        RetryPolicy own = options_.policy;
        own.max_retries = options_.nested ? 0 : request.max_retries.value_or(own.max_retries);
        own.max_server_wait = request.max_server_wait.value_or(own.max_server_wait);
        own.total_deadline = request.total_deadline.value_or(own.total_deadline);
        own.attempt_timeout = request.attempt_timeout.value_or(own.attempt_timeout);
        pending.own_policy = within_bounds(std::move(own));
        call.policy = &*pending.own_policy;
    }
    call.method = request.method;
    call.origin = pending.url->origin;
    call.path = pending.url->path;
    call.bucket = request.bucket ? *request.bucket : cat(request.method, ' ', call.path);
    call.body = BodyAccess::kind(request.body);
    call.owner = &pending;
    const std::string* credential = find_header(request.headers, "authorization");
    credential = credential ? credential : find_header(request.headers, "x-api-key");
    call.credential = request.credential ? *request.credential : credential ? *credential : "";
    const Lock lock(mutex_);
    call.key = key_for(request, *call.policy, *random_);
    return true;
}

// The lock is held. From here on it can be cancelled.
void Engine::enlist(Pending& pending) {
    pending.number = ++last_number_;
    if (pending.request.cancellation || pending.promise) {
        open_.emplace(pending.number, &pending);
    }
}

// Not under the lock: the watcher may run at once.
void Engine::watch(Pending& pending) {
    const std::uint64_t number = pending.number;
    pending.watched = CancellationAccess::watch(*pending.request.cancellation, [this, number] {
        const Lock lock(mutex_);
        cancels_.push_back(number);
        curl_multi_wakeup(multi_);
    });
}

// The lock is held.
void Engine::submit(Pending& pending) {
    const Now now = clock_->now();
    pending.begun = true;
    dispatcher_.begin(pending.call, now);
    if (pending.cancelled_early) {
        dispatcher_.cancel(pending.call, now);
    }
    if (driving_) {
        curl_multi_wakeup(multi_);
    }
}

void Engine::take_in(Pending& pending, Lock& lock) {
    enlist(pending);
    if (pending.request.cancellation) {
        lock.unlock();
        watch(pending);
        lock.lock();
    }
    submit(pending);
}

ClientResult Engine::call(ClientRequest request) {
    Pending pending;
    pending.request = std::move(request);
    if (!prepare(pending)) {
        return std::move(pending.result);
    }
    Lock lock(mutex_);
    take_in(pending, lock);
    wait_for(pending, lock);
    return std::move(pending.result);
}

void Engine::wait_for(Pending& pending, Lock& lock) {
    while (!pending.done) {
        if (driving_) {
            followers_.push_back(&pending);
            pending.changed.wait(lock, [&] { return pending.done || !driving_; });
            followers_.erase(std::find(followers_.begin(), followers_.end(), &pending));
            continue;
        }
        driving_ = true;
        while (!pending.done) {
            turn(lock);
        }
        driving_ = false;
        hand_over();
    }
}

// The lock is held: somebody else drives what is still open. Never one whose call is done: it would
// leave without driving.
void Engine::hand_over() {
    if (background_open_ > 0) {
        background_work_.notify_one();
        return;
    }
    const auto next = std::find_if(followers_.begin(), followers_.end(),
                                   [](const Pending* follower) { return !follower->done; });
    if (next != followers_.end()) {
        (*next)->changed.notify_one();
    }
}

std::future<ClientResult> Engine::start(ClientRequest request) {
    auto owned = std::make_unique<Pending>();
    Pending& pending = *owned;
    pending.request = std::move(request);
    std::future<ClientResult> future = pending.promise.emplace().get_future();
    if (!prepare(pending)) {
        pending.promise->set_value(std::move(pending.result));
        return future;
    }
    Lock lock(mutex_);
    take_in(pending, lock);
    background_calls_.emplace(pending.number, std::move(owned));
    ++background_open_;
    if (!background_.joinable()) {
        background_ = std::thread([this] { run_background(); });
    }
    background_work_.notify_one();
    return future;
}

void Engine::run_background() {
    Lock lock(mutex_);
    while (true) {
        background_work_.wait(lock,
                              [this] { return (background_open_ > 0 && !driving_) || closing_; });
        if (background_open_ == 0 && closing_) {
            return;
        }
        if (driving_) {  // closing, while a caller still drives: its turns end our calls
            background_work_.wait(lock, [this] { return !driving_ || background_open_ == 0; });
            continue;
        }
        driving_ = true;
        while (background_open_ > 0) {
            turn(lock);
        }
        driving_ = false;
        hand_over();
    }
}

ClientCounters Engine::counters() const {
    const Lock lock(mutex_);
    return dispatcher_.counters(clock_->now());
}

}  // namespace ration::client
