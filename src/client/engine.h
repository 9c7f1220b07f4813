// The client's sockets: moves all its calls on one libcurl multi handle.
//
// There is no thread that owns the sockets. Whoever waits for a call moves them for everybody (the
// driver); the others sleep and one of them takes over when the driver's own call has ended. So a
// lone blocking call runs in its caller's thread without a switch, and many callers share
// connections and streams. Calls begun by `start` are driven by a thread of the client's own.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client/dispatcher.h"
#include "client/easy_pool.h"
#include "client/exchange.h"
#include "client/random.h"
#include "client/url.h"
#include "ration/client.h"

namespace ration::client {

class Engine final : public Client {
public:
    explicit Engine(ClientOptions options);
    ~Engine() override;

    [[nodiscard]] ClientResult call(ClientRequest request) override;
    [[nodiscard]] std::future<ClientResult> start(ClientRequest request) override;
    [[nodiscard]] ClientCounters counters() const override;

private:
    struct Pending {
        std::uint64_t number = 0;
        Call call;
        ClientRequest request;
        std::optional<RetryPolicy> own_policy;
        std::shared_ptr<const Url> url;
        Exchange exchange;
        ClientResult result;
        std::optional<std::uint64_t> watched;  // at its cancellation
        std::condition_variable changed;
        bool begun = false;
        bool cancelled_early = false;  // before it was begun
        bool closed = false;           // cancelled by the client's end
        bool done = false;
        bool in_transfer = false;
        std::optional<std::promise<ClientResult>> promise;
    };
    using Lock = std::unique_lock<std::mutex>;

    // False: the request is wrong, and `pending.result` says why.
    [[nodiscard]] bool prepare(Pending& pending);
    [[nodiscard]] std::shared_ptr<const Url> known_url(const std::string& text);
    void take_in(Pending& pending, Lock& lock);
    void enlist(Pending& pending);
    void watch(Pending& pending);
    void submit(Pending& pending);
    void wait_for(Pending& pending, Lock& lock);
    void hand_over();
    void run_background();

    void turn(Lock& lock);
    void cancel_requested(Now now);
    [[nodiscard]] bool perform(const Steps& steps);
    void begin_attempt(Pending& pending, Nanos time);
    void add_to_multi(Pending& pending);
    void leave_multi(Pending& pending);
    void move_sockets(std::optional<Mono> wake_at, bool may_wait);
    void read_finished();
    void read_expired();
    void report(Now now);
    void tell_answer(Pending& pending);
    void end(Pending& pending, const Step& step);
    [[nodiscard]] int poll_milliseconds(std::optional<Mono> wake_at) const;

    ClientOptions options_;
    std::shared_ptr<const Clock> clock_;
    std::shared_ptr<RandomSource> random_;

    mutable std::mutex mutex_;  // the members down to the blank line
    Dispatcher dispatcher_;
    std::unordered_map<std::uint64_t, Pending*> open_;  // those that can be cancelled
    std::unordered_map<std::string, std::shared_ptr<const Url>> urls_;  // read before
    std::vector<std::uint64_t> cancels_;
    std::deque<Pending*> followers_;
    bool driving_ = false;
    bool closing_ = false;
    std::uint64_t last_number_ = 0;
    std::size_t background_open_ = 0;
    std::condition_variable background_work_;
    std::thread background_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Pending>> background_calls_;

    // The driver's own.
    EasyPool pool_;
    CURLM* multi_;
    Steps steps_;
    std::vector<Pending*> in_transfer_;
    std::vector<Pending*> finished_;
    std::vector<Pending*> ended_;
};

}  // namespace ration::client
