#include "counters/redis/link.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "counters/redis/script.h"

namespace ration {
namespace {

constexpr std::size_t max_spare = 1024;
constexpr std::size_t max_owed = 10'000;
constexpr int max_tries = 3;
constexpr Nanos first_pause = std::chrono::milliseconds(5);
constexpr Nanos longest_pause = std::chrono::milliseconds(250);
constexpr std::int64_t nanos_per_micro = 1000;

bool begins(std::string_view text, std::string_view word) {
    return text.starts_with(word) && (text.size() == word.size() || text[word.size()] == ' ');
}

// Errors that say that this server is not the one to ask, or not yet: another connection may be.
bool is_about_the_server(std::string_view error) {
    for (const std::string_view word : {"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MOVED",
                                        "NOAUTH", "UNBLOCKED", "NOREPLICAS"}) {
        if (begins(error, word)) {
            return true;
        }
    }
    return false;
}

// Grows from the first pause to the longest; spread, so that many processes do not come at once.
Nanos pause_after(unsigned failures, std::uint64_t salt) {
    const Nanos pause = std::min(longest_pause, first_pause * (1U << std::min(failures, 10U)));
    const std::uint64_t mixed = (salt + failures) * 0x9e3779b97f4a7c15ULL >> 40;
    return pause - pause * static_cast<std::int64_t>(mixed % 512) / 1024;
}

void mark_unavailable(Outcome& outcome) {
    outcome.status = absl::StatusCode::kUnavailable;
    outcome.admitted = false;
    outcome.count = 0;
}

}  // namespace

RedisLink::RedisLink(net::Loop& loop, std::shared_ptr<RedisStore> store)
    : loop_(loop), store_(std::move(store)), alarm_(loop, [this] { ring(); }) {
    store_->monitor().link_made();
}

RedisLink::~RedisLink() {
    if (state_ == State::ready) {
        store_->monitor().disconnected();
    }
    store_->monitor().waiting(-static_cast<std::int64_t>(sent_.size() + unsent_.size()));
    store_->monitor().link_gone();
}

absl::Status RedisLink::open() {
    if (absl::Status status = alarm_.open(); !status.ok()) {
        return status;
    }
    // When the loop runs: its reading of the time is of no use before.
    loop_.post([this] {
        if (state_ == State::waiting) {
            connect();
        }
    });
    return absl::OkStatus();
}

std::int64_t RedisLink::micros_now() const {
    return loop_.now().mono.time_since_epoch().count() / nanos_per_micro;
}

// ---- asking ----

bool RedisLink::accepts(std::size_t more) {
    RedisMonitor& monitor = store_->monitor();
    if (state_ != State::ready && !trusting_) {
        monitor.failed(RedisFailure::down);
        return false;
    }
    if (sent_.size() + unsent_.size() + more > store_->options().max_waiting) {
        monitor.failed(RedisFailure::queue);
        return false;
    }
    return true;
}

std::unique_ptr<RedisLink::Call> RedisLink::new_call() {
    if (spare_.empty()) {
        return std::make_unique<Call>();
    }
    std::unique_ptr<Call> call = std::move(spare_.back());
    spare_.pop_back();
    return call;
}

bool RedisLink::ask(std::span<const Transaction> transactions, Now now, std::span<Outcome> outcomes,
                    CounterWaiter& waiter) {
    const bool accepted = accepts(transactions.size());
    std::shared_ptr<Ask> ask;
    for (std::size_t i = 0; i < transactions.size(); ++i) {
        Outcome& outcome = outcomes[i];
        mark_unavailable(outcome);
        outcome.at = now;
        if (transactions[i].charges.empty()) {
            outcome.status = absl::StatusCode::kOk;
            outcome.admitted = true;
            continue;
        }
        std::unique_ptr<Call> call = new_call();
        if (!store_->codec().encode(transactions[i], now, call->redis)) {
            outcome.status = absl::StatusCode::kInvalidArgument;
        } else if (accepted) {
            if (ask == nullptr) {
                ask = std::make_shared<Ask>();
                ask->waiter = &waiter;
            }
            ++ask->left;
            call->ask = ask;
            call->outcome = &outcome;
            enqueue(std::move(call));
            continue;
        } else {
            keep_owed(*call, false);
        }
        finish(std::move(call));
    }
    return ask != nullptr;
}

void RedisLink::tell(const Transaction& transaction, Now now) {
    std::unique_ptr<Call> call = new_call();
    if (transaction.charges.empty() || !store_->codec().encode(transaction, now, call->redis)) {
        return finish(std::move(call));
    }
    if (accepts(1)) {
        return enqueue(std::move(call));
    }
    keep_owed(*call, false);
    finish(std::move(call));
}

void RedisLink::run(std::string command, std::function<void(const RespReply*)> told) {
    if (!accepts(1)) {
        return told(nullptr);
    }
    std::unique_ptr<Call> call = new_call();
    call->redis.command = std::move(command);
    call->raw = std::move(told);
    enqueue(std::move(call));
}

void RedisLink::forget(CounterWaiter& waiter) {
    for (Calls* calls : {&sent_, &unsent_}) {
        for (const std::unique_ptr<Call>& call : *calls) {
            if (call->ask != nullptr && call->ask->waiter == &waiter) {
                call->outcome = nullptr;
                call->ask->waiter = nullptr;
            }
        }
    }
}

void RedisLink::enqueue(std::unique_ptr<Call> call) {
    call->asked = loop_.now().mono;
    call->deadline = call->asked + store_->options().deadline;
    call->tries = 0;
    store_->monitor().waiting(1);
    if (state_ == State::ready) {
        send(std::move(call));
    } else {
        unsent_.push_back(std::move(call));
    }
    set_alarm();
}

void RedisLink::send(std::unique_ptr<Call> call) {
    ++call->tries;
    call->loads = script_loads_;
    if (call->redis.not_after_at != 0) {
        std::optional<std::int64_t> last;
        if (server_ahead_) {
            last = *server_ahead_ + call->deadline.time_since_epoch().count() / nanos_per_micro;
        }
        store_->codec().set_last_moment(call->redis, last);
    }
    connection_->send(call->redis.command);
    sent_.push_back(std::move(call));
}

// ---- answers ----

std::size_t RedisLink::received(std::string_view bytes) {
    std::size_t all = 0;
    while (connection_ != nullptr && all < bytes.size()) {
        std::size_t used = 0;
        const RespRead read = parse_resp(bytes.substr(all), reply_, used);
        if (read == RespRead::more) {
            break;
        }
        if (read == RespRead::malformed || (greetings_ == 0 && sent_.empty())) {
            drop(RedisFailure::nonsense, "the server does not speak as Redis does");
            break;
        }
        all += used;
        if (greetings_ != 0) {
            take_greeting(reply_);
        } else {
            take_answer(reply_);
        }
    }
    return all;
}

void RedisLink::take_answer(const RespReply& reply) {
    std::unique_ptr<Call> call = std::move(sent_.front());
    sent_.pop_front();
    if (reply.is_error()) {
        return take_error(std::move(call), reply.values.front().text);
    }
    if (call->raw) {
        std::exchange(call->raw, nullptr)(&reply);
        return finish(std::move(call));
    }
    Outcome ignored;
    Outcome& outcome = call->outcome != nullptr ? *call->outcome : ignored;
    std::int64_t server_micros = 0;
    switch (store_->codec().decode(reply, call->redis, outcome, server_micros)) {
        case RedisCodec::Answer::outcome:
            server_ahead_ = server_micros - micros_now();
            store_->monitor().answered(loop_.now().mono - call->asked);
            return finish(std::move(call));
        case RedisCodec::Answer::too_late:
            // The server's clock went forward, or the call lay about: its clock is known now.
            server_ahead_ = server_micros - micros_now();
            if (!try_again(call)) {
                fail(std::move(call), RedisFailure::deadline, false);
            }
            return;
        case RedisCodec::Answer::nonsense:
            fail(std::move(call), RedisFailure::nonsense, true);
            return drop(RedisFailure::broken, "the script's answer is none");
    }
}

void RedisLink::take_error(std::unique_ptr<Call> call, std::string_view error) {
    if (begins(error, "NOSCRIPT") && !call->raw) {
        if (call->loads == script_loads_) {
            load_script();
        }
        if (try_again(call)) {
            return;
        }
    }
    store_->monitor().trouble(cat(store_->name(), " answers ", error.substr(0, 200)));
    const bool other_server = is_about_the_server(error);
    const std::string detail = other_server ? cat("it answers ", error.substr(0, 200)) : "";
    fail(std::move(call), RedisFailure::error, true);
    if (other_server) {
        drop(RedisFailure::broken, detail);
    }
}

// A call that was certainly not done is sent once more while its time lasts.
bool RedisLink::try_again(std::unique_ptr<Call>& call) {
    if (call->tries >= max_tries || loop_.now().mono >= call->deadline) {
        return false;
    }
    send(std::move(call));
    return true;
}

// After a restart or a flush of the scripts: once for all the calls that met it.
void RedisLink::load_script() {
    std::unique_ptr<Call> call = new_call();
    append_resp_command(call->redis.command, {"SCRIPT", "LOAD", redis_script()});
    call->raw = [](const RespReply*) {};
    call->asked = loop_.now().mono;
    call->deadline = call->asked + store_->options().deadline;
    store_->monitor().waiting(1);
    store_->monitor().script_loaded();
    send(std::move(call));
    ++script_loads_;
}

void RedisLink::fail(std::unique_ptr<Call> call, RedisFailure why, bool was_sent) {
    store_->monitor().failed(why);
    keep_owed(*call, was_sent);
    if (call->outcome != nullptr) {
        mark_unavailable(*call->outcome);
    }
    if (call->raw) {
        std::exchange(call->raw, nullptr)(nullptr);
    }
    finish(std::move(call));
}

void RedisLink::keep_owed(Call& call, bool was_sent) {
    std::string* command = nullptr;
    if (call.redis.repeatable) {
        // What it frees is owed however late it is.
        if (call.redis.not_after_at != 0) {
            store_->codec().set_owed(call.redis);
        }
        command = &call.redis.command;
    } else if (was_sent && !call.redis.undo.empty()) {
        command = &call.redis.undo;
    }
    if (command != nullptr && owed_.size() < max_owed) {
        owed_.push_back(std::move(*command));
    }
}

// Tells the waiter when this was the last call of what it asked, and keeps the call for the next.
void RedisLink::finish(std::unique_ptr<Call> call) {
    if (call->asked != Mono{}) {
        store_->monitor().waiting(-1);
    }
    const std::shared_ptr<Ask> ask = std::move(call->ask);
    RedisCall redis = std::move(call->redis);
    redis.command.clear();
    redis.undo.clear();
    redis.not_after_at = 0;
    redis.repeatable = false;
    *call = Call{};
    call->redis = std::move(redis);
    if (spare_.size() < max_spare) {
        spare_.push_back(std::move(call));
    }
    if (ask != nullptr && --ask->left == 0 && ask->waiter != nullptr) {
        ask->waiter->counters_answered();
    }
}

// ---- the connection ----

void RedisLink::connect() {
    const net::Endpoints endpoints = store_->addresses().get();
    state_ = State::connecting;
    connect_by_ = loop_.now().mono + store_->options().connect_timeout;
    if (endpoints->empty()) {
        return drop(RedisFailure::broken, "its name is not known");
    }
    RedisConnection::User& user = *this;
    connection_ = std::make_unique<RedisConnection>(loop_, *store_, user);
    if (absl::Status status = connection_->start((*endpoints)[failures_ % endpoints->size()]);
        !status.ok()) {
        return drop(RedisFailure::broken, std::string(status.message()));
    }
    set_alarm();
}

void RedisLink::connected() {
    state_ = State::greeting;
    connection_->send(store_->greeting(greetings_));
}

void RedisLink::take_greeting(const RespReply& reply) {
    if (reply.is_error()) {
        return drop(RedisFailure::broken, cat("it answers ", reply.values.front().text));
    }
    if (const auto time = RedisCodec::micros_of_time(reply)) {
        server_ahead_ = *time - micros_now();
    }
    if (--greetings_ == 0) {
        become_ready();
    }
}

void RedisLink::become_ready() {
    state_ = State::ready;
    trusting_ = true;
    failures_ = 0;
    store_->monitor().connected();
    for (std::string& command : std::exchange(owed_, {})) {
        std::unique_ptr<Call> call = new_call();
        call->redis.command = std::move(command);
        call->redis.charges = 0;
        call->redis.repeatable = true;
        enqueue(std::move(call));
    }
    for (std::unique_ptr<Call>& call : std::exchange(unsent_, {})) {
        send(std::move(call));
    }
}

void RedisLink::broke(std::string detail) {
    drop(RedisFailure::broken, std::move(detail));
}

// Ends the connection and everything that waits on it; another is tried after a pause. `detail` by
// value: it may be a text of what ends here.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void RedisLink::drop(RedisFailure why, std::string detail) {
    const bool was_ready = state_ == State::ready;
    // A server that closes an idle connection has done nothing wrong.
    trusting_ = was_ready && why == RedisFailure::broken && sent_.empty();
    if (was_ready) {
        store_->monitor().disconnected();
    }
    if (connection_ != nullptr) {
        connection_->close();
        loop_.retire(std::move(connection_));
    }
    state_ = State::waiting;
    greetings_ = 0;
    server_ahead_.reset();
    if (!was_ready || why != RedisFailure::broken) {
        store_->addresses().doubt();
    }
    if (!trusting_) {
        store_->monitor().trouble(cat(store_->name(), ": ", detail));
    }
    retry_at_ = loop_.now().mono +
                (was_ready ? Nanos(0)
                           : pause_after(failures_, reinterpret_cast<std::uintptr_t>(this) >> 4));
    failures_ = was_ready ? 0 : failures_ + 1;
    set_alarm();
    for (std::unique_ptr<Call>& call : std::exchange(sent_, {})) {
        fail(std::move(call), why, true);
    }
    for (std::unique_ptr<Call>& call : std::exchange(unsent_, {})) {
        fail(std::move(call), why, false);
    }
}

// ---- time ----

Mono RedisLink::next_moment() const {
    Mono next = state_ == State::waiting ? retry_at_
                : state_ == State::ready ? Mono::max()
                                         : connect_by_;
    for (const Calls* calls : {&sent_, &unsent_}) {
        if (!calls->empty()) {
            next = std::min(next, calls->front()->deadline);
        }
    }
    return next;
}

void RedisLink::set_alarm() {
    if (const Mono next = next_moment(); next != Mono::max()) {
        alarm_.set(next);
    }
}

void RedisLink::ring() {
    const Mono now = loop_.now().mono;
    const bool late = std::any_of(sent_.begin(), sent_.end(),
                                  [&](const auto& call) { return call->deadline <= now; });
    if (late) {
        drop(RedisFailure::deadline, "no answer in time");
    } else if (state_ == State::waiting && retry_at_ <= now) {
        connect();
    } else if ((state_ == State::connecting || state_ == State::greeting) && connect_by_ <= now) {
        drop(RedisFailure::broken, "no connection in time");
    }
    expire_unsent();
    set_alarm();
}

void RedisLink::expire_unsent() {
    while (!unsent_.empty() && unsent_.front()->deadline <= loop_.now().mono) {
        std::unique_ptr<Call> call = std::move(unsent_.front());
        unsent_.pop_front();
        trusting_ = false;
        fail(std::move(call), RedisFailure::deadline, false);
    }
}

}  // namespace ration
