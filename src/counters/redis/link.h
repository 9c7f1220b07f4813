// One pipelined connection to Redis, and the calls that wait on it. Asynchronous: it belongs to an
// event loop and never waits.
//
// Answers come in the order of the calls, so a call that is too slow ends the connection, and all
// that waited on it fail: an answer can never reach the wrong call. A call that failed may have
// been done or not; what must not stay (an in-flight slot, a place in a sliding window) is given
// back by its lease or its moment when the server is there again. While there is no connection
// calls fail at once; a new one is tried with growing pauses, a quarter of a second at most.
//
// Thread rule: the loop's thread, `open` before it runs. Ownership: waiters and their outcomes must
// stay until told, or until `forget`. Bound: RedisOptions::max_waiting calls.
//
//   RedisLink link(loop, store);
//   if (absl::Status status = link.open(); !status.ok()) return status;
//   if (!link.ask(transactions, now, outcomes, waiter)) use(outcomes);   // they are there already
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "counters/redis/alarm.h"
#include "counters/redis/connection.h"
#include "counters/redis/store.h"

namespace ration {

class CounterWaiter {
public:
    virtual ~CounterWaiter() = default;
    // The outcomes are complete. Called on the loop's thread, never from within `ask`.
    virtual void counters_answered() = 0;
};

class RedisLink final : private RedisConnection::User {
public:
    RedisLink(net::Loop& loop, std::shared_ptr<RedisStore> store);
    ~RedisLink() override;
    RedisLink(const RedisLink&) = delete;
    RedisLink& operator=(const RedisLink&) = delete;
    // Connects as soon as the loop runs. The link outlives the loop's run.
    [[nodiscard]] absl::Status open();

    // True: `waiter` will hear. False: every outcome is there already (nothing to ask, or a
    // failure).
    [[nodiscard]] bool ask(std::span<const Transaction> transactions, Now now,
                           std::span<Outcome> outcomes, CounterWaiter& waiter);
    // Nobody waits for the outcome.
    void tell(const Transaction& transaction, Now now);
    // The waiter hears no more of what it asked.
    void forget(CounterWaiter& waiter);
    // Calls wait for their answers.
    [[nodiscard]] bool busy() const { return !sent_.empty() || !unsent_.empty(); }
    // Another command than the script's. Null: no answer, or an error.
    void run(std::string command, std::function<void(const RespReply*)> told);

private:
    struct Ask {
        CounterWaiter* waiter = nullptr;
        std::size_t left = 0;
    };
    struct Call {
        RedisCall redis;
        std::shared_ptr<Ask> ask;                   // null: nobody waits
        Outcome* outcome = nullptr;                 // of the ask
        std::function<void(const RespReply*)> raw;  // other commands; null reply: failed
        Mono deadline{};
        Mono asked{};
        int tries = 0;
        std::uint64_t loads = 0;  // script_loads_ when it was sent
    };
    using Calls = std::deque<std::unique_ptr<Call>>;
    enum class State : std::uint8_t { waiting, connecting, greeting, ready };

    // RedisConnection::User
    void connected() override;
    std::size_t received(std::string_view bytes) override;
    void broke(std::string detail) override;

    void connect();
    void take_greeting(const RespReply& reply);
    void take_answer(const RespReply& reply);
    void take_error(std::unique_ptr<Call> call, std::string_view error);
    void become_ready();
    void drop(RedisFailure why, std::string detail);
    void ring();
    void set_alarm();
    [[nodiscard]] Mono next_moment() const;
    void expire_unsent();

    [[nodiscard]] std::unique_ptr<Call> new_call();
    [[nodiscard]] bool accepts(std::size_t more);
    void enqueue(std::unique_ptr<Call> call);
    void send(std::unique_ptr<Call> call);
    [[nodiscard]] bool try_again(std::unique_ptr<Call>& call);
    void load_script();
    void fail(std::unique_ptr<Call> call, RedisFailure why, bool was_sent);
    void keep_owed(Call& call, bool was_sent);
    void finish(std::unique_ptr<Call> call);
    [[nodiscard]] std::int64_t micros_now() const;

    net::Loop& loop_;
    std::shared_ptr<RedisStore> store_;
    Alarm alarm_;
    std::unique_ptr<RedisConnection> connection_;
    State state_ = State::waiting;
    bool trusting_ = true;       // calls may wait for a connection that is being made
    std::size_t greetings_ = 0;  // answers still to come
    Mono retry_at_{};
    Mono connect_by_{};
    unsigned failures_ = 0;  // attempts to connect since the last success
    std::uint64_t script_loads_ = 0;
    std::optional<std::int64_t> server_ahead_;  // its clock less the loop's, microseconds
    Calls unsent_;
    Calls sent_;
    std::deque<std::string> owed_;  // commands that free slots and return places
    std::vector<std::unique_ptr<Call>> spare_;
    RespReply reply_;
};

}  // namespace ration
