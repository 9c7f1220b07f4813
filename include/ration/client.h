// An HTTP client that behaves well against rate limits.
//
// It waits as long as a server asks for and never goes early, backs off with full jitter where
// nothing is asked for, repeats only what is safe to repeat, and stops when waiting cannot help.
// All calls of one client share what answers told: after one refusal the others hold back too, a
// probe goes first, and no more calls are in flight than the server says remain. One client, kept,
// is better than many. The rules and their numbers are in ration/retry_policy.h.
//
// Times are nanoseconds; those of waits run on the monotonic clock. Thread rule: a Client may be
// used from any thread at once; connections, HTTP/2 streams and everything learnt are shared.
// Ownership: it must outlive its calls; its end cancels what `start` began. What a request's
// functions touch must live until the call's result is there. Functions of a request and hooks run
// on whichever thread moves the client's sockets: they must not block nor call the client.
// Errors: an answer of any status is an answer. `ClientResult::error` is set when there was none;
// `reason` always says why the call ended. Nothing throws.
//
//   auto client = ration::Client::create();
//   if (!client.ok()) return client.status();
//   ration::ClientRequest request{.method = "POST", .url = "https://api.example/v1/bookings"};
//   request.headers = {{"Authorization", "Bearer " + key}, {"Content-Type", "application/json"}};
//   request.body = ration::RequestBody::text(json);
//   request.idempotency_key = ration::new_idempotency_key();
//   ration::ClientResult result = (*client)->call(std::move(request));
//   if (result.reason == ration::StopReason::success) use(result.body);
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ration/retry_policy.h"
#include "ration/time.h"

namespace ration {

using HeaderLines = std::vector<std::pair<std::string, std::string>>;  // in order, may repeat

inline constexpr std::size_t max_url_bytes = 64 * 1024;
inline constexpr std::size_t max_answer_header_bytes = 256 * 1024;
inline constexpr std::size_t max_error_type_body_bytes = 64 * 1024;  // beyond it no type is read
inline constexpr std::size_t max_gates = 10'000;   // of one client; beyond it newcomers share one
inline constexpr std::size_t max_origins = 1'000;  // whose budgets are remembered

// The first value of a field, compared without case; nullptr when there is none.
[[nodiscard]] const std::string* find_header(const HeaderLines& headers, std::string_view name);

// A random UUID (RFC 9562, version 4) in text.
[[nodiscard]] std::string new_idempotency_key();

// Where a request's body comes from. Copies share a stream's functions, so one call at a time may
// send it.
class RequestBody {
public:
    // Fills the front of the buffer: bytes written, 0 at the end, -1 on failure. Where a size was
    // announced, another number of bytes ends the call too (bad_request, and `message` says so).
    using Read = std::function<std::ptrdiff_t(std::span<char>)>;
    using Rewind = std::function<bool()>;  // back to the beginning; false: it cannot

    RequestBody() = default;  // none
    [[nodiscard]] static RequestBody text(std::string bytes);
    // Read once, so never sent again, nor by another call. Without a size it goes out in chunks.
    [[nodiscard]] static RequestBody stream(Read read, std::optional<std::uint64_t> size = {});
    [[nodiscard]] static RequestBody rewindable(Read read, Rewind rewind,
                                                std::optional<std::uint64_t> size = {});
    // A file, read while it is sent, by each call from its beginning: many may send it at once.
    // NotFound or what the system says when it can't be opened.
    [[nodiscard]] static absl::StatusOr<RequestBody> file(const std::string& path);

    [[nodiscard]] bool empty() const { return bytes_.empty() && !read_ && !read_at_ && !given_; }

private:
    friend struct BodyAccess;
    std::string bytes_;
    bool given_ = false;  // also when `bytes_` is empty
    using ReadAt = std::function<std::ptrdiff_t(std::span<char>, std::uint64_t offset)>;
    Read read_;
    ReadAt read_at_;
    std::shared_ptr<std::atomic<bool>> begun_;  // of what can be read once
    Rewind rewind_;
    std::optional<std::uint64_t> size_;
};

// Ends a call from outside, within milliseconds: its wait, its hold or its transfer. Copies are the
// same cancellation; one may serve many calls. Thread rule: any thread.
class Cancellation {
public:
    Cancellation();
    // The first reason stays.
    void cancel(std::string_view reason = "cancelled") const;
    [[nodiscard]] bool cancelled() const;
    [[nodiscard]] std::string reason() const;  // empty before

private:
    friend struct CancellationAccess;
    struct State;
    std::shared_ptr<State> state_;
};

struct ClientRequest {
    std::string method = "GET";
    std::string url;  // http or https
    HeaderLines headers;
    RequestBody body;
    // Sent in the policy's key header on every attempt; makes a POST repeatable. A key among
    // `headers` counts the same and is never replaced; an empty one is none, and none is made.
    std::string idempotency_key;
    // Calls with the same origin, credential and bucket share a gate. Left out: method and path.
    std::optional<std::string> bucket;
    // Left out: the first of Authorization and X-Api-Key.
    std::optional<std::string> credential;
    // Takes a success's body as it comes instead of `ClientResult::body`; false ends the call. What
    // was given to it is not taken back: a call that breaks off then is not repeated.
    std::function<bool(std::string_view)> on_body;
    std::optional<Cancellation> cancellation;
    // Instead of the policy's.
    std::optional<unsigned> max_retries;
    std::optional<Nanos> max_server_wait;
    std::optional<Nanos> total_deadline;
    std::optional<Nanos> attempt_timeout;
    std::optional<KeyMaking> key_making;
};

struct ClientResult {
    StopReason reason = StopReason::cancelled;
    int status = 0;  // of the last answer; 0: there was none
    HeaderLines headers;
    std::string body;
    bool body_complete = true;          // false: an error's body that was endless, too slow or cut
    std::string error_type;             // as the body says: "rate_limited"
    std::optional<AttemptError> error;  // the last attempt had no answer
    std::string message;                // of the failure or the cancellation, for people
    std::optional<Wall> retry_at;       // when the server said it may be tried again
    std::string idempotency_key;        // given or made: with it the call can be resumed
    unsigned attempts = 0;
    Nanos waited{0};
    std::string url;               // of the answer, after redirects
    bool without_secrets = false;  // redirects led the last attempt to another origin, without key

    [[nodiscard]] bool ok() const { return reason == StopReason::success; }
};

// Watching. Each is called without a lock; an exception out of one is swallowed. They name no
// credential and no key.
struct ClientHooks {
    struct Send {
        std::uint64_t call;  // counts from 1, in the order of beginning
        unsigned attempt;
        std::string_view method, url;
    };
    struct Answer {
        std::uint64_t call;
        unsigned attempt;
        int status;  // 0: none
        std::optional<AttemptError> error;
        std::string_view error_type;
        const HeaderLines* headers;
    };
    struct Wait {
        std::uint64_t call;
        unsigned attempt;  // the last one made
        WaitSource source;
        std::string_view reason;    // "429", "connection_lost"; empty before the first attempt
        std::optional<Nanos> time;  // how long; nullopt: until another call's answer
    };
    std::function<void(const Send&)> on_send;
    std::function<void(const Answer&)> on_answer;
    std::function<void(const Wait&)> on_wait;
    std::function<void(std::uint64_t call, const ClientResult&)> on_end;  // without its key
};

struct GateState {
    std::string origin, bucket;
    bool closed = false, probing = false;
    Nanos opens_in{0};
    std::uint32_t in_flight = 0, waiting = 0;
    std::optional<std::uint64_t> remaining;  // as last told
};

struct ClientCounters {
    std::uint64_t calls = 0, sends = 0;
    std::map<std::string, std::uint64_t> retries;         // by status or error
    std::map<std::string, std::uint64_t> local_refusals;  // by reason
    Nanos waited[wait_sources] = {};
    std::map<std::string, std::uint32_t> budgets;  // by origin, thousandths of a token
    std::vector<GateState> gates;
};

// Refuses locally with odds max(0, (requests - k * accepts) / (requests + 1)) over a window.
struct ThrottleOptions {
    std::uint32_t k = 2;
    Nanos window = std::chrono::minutes(2);
};
// Opens when, of at least `min_outcomes` in the window, so many percent were lost connections,
// timeouts or 503s; lets one probe through after `open`.
struct BreakerOptions {
    Nanos window = std::chrono::seconds(10);
    std::uint32_t min_outcomes = 10;
    std::uint32_t failure_percent = 50;
    Nanos open = std::chrono::seconds(5);
};
// Calls in flight for each origin: more after a full window at the limit, fewer on 429, 503 and
// timeouts.
struct ConcurrencyOptions {
    std::uint32_t initial = 10, min = 1, max = 100;
    std::uint32_t increase = 1;
    std::uint32_t decrease_percent = 50;  // what is left
    Nanos decrease_every = std::chrono::seconds(1);
};
// The load shaper: `amount` sends in each `every`, evenly spaced, after a burst.
struct PaceOptions {
    std::uint32_t amount = 0;  // 0: no fixed pace
    Nanos every = std::chrono::minutes(1);
    std::uint32_t burst = 1;
    // Spreads each bucket's calls over the time that its answers name: the remaining number until
    // the reset; where they name none, refusals slow it down and successes speed it up.
    bool by_answers = false;
};

enum class HttpVersion : std::uint8_t {
    http1,
    http2_over_tls,  // where the server offers it
};

struct ClientOptions {
    RetryPolicy policy;
    ClientHooks hooks;
    // Inside another client that retries: this one does not.
    bool nested = false;
    std::optional<ThrottleOptions> throttle;
    std::optional<BreakerOptions> breaker;
    std::optional<ConcurrencyOptions> concurrency;
    std::optional<PaceOptions> pace;
    // Tells the server which attempt this is, from the second on. Empty: nothing is told.
    std::string attempt_header = "Retry-Attempt";
    // Left behind, with Authorization, Cookie and the key, when a redirect leads to another origin.
    std::vector<std::string> secret_headers = {"X-Api-Key"};
    std::string user_agent = "ration-client";
    std::size_t max_answer_bytes = std::size_t{64} << 20U;  // of a body kept in memory
    std::size_t max_error_bytes = std::size_t{1} << 20U;    // of an answer from 400 on
    Nanos error_body_time = std::chrono::seconds(5);        // for reading why it was refused
    Nanos connect_timeout = std::chrono::seconds(10);
    HttpVersion http_version = HttpVersion::http2_over_tls;
    std::uint32_t max_connections = 64;  // kept open
    // To one host at a time, and so the calls in flight there, but over HTTP/2. 0: any number.
    std::uint32_t max_host_connections = 32;
    std::optional<std::string> proxy;  // left out: as the environment says; empty: none
    std::string ca_file;               // left out: the system's authorities
    std::string client_certificate, client_key;
    // For tests: left out, the system's.
    std::shared_ptr<const Clock> clock;
    std::shared_ptr<RandomSource> random;
};

class Client {
public:
    // InvalidArgument for options that cannot be meant.
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<Client>> create(ClientOptions options = {});
    virtual ~Client() = default;

    // Returns when the call has ended.
    [[nodiscard]] virtual ClientResult call(ClientRequest request) = 0;
    // Returns at once; a thread of the client's own moves the call.
    [[nodiscard]] virtual std::future<ClientResult> start(ClientRequest request) = 0;
    [[nodiscard]] virtual ClientCounters counters() const = 0;
};

}  // namespace ration
