#include "counters/redis/redis_counters.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "net/signals.h"

namespace ration {
namespace {

// What a blocked caller waits for.
class Gate final : public CounterWaiter {
public:
    void open() {
        // Told under the lock: the waiting side may end this object as soon as it is free.
        const std::lock_guard lock(mutex_);
        open_ = true;
        opened_.notify_one();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [this] { return open_; });
    }
    void counters_answered() override { open(); }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

std::string random_text() {
    std::array<unsigned char, 16> bytes;
    randombytes_buf(bytes.data(), bytes.size());
    std::array<char, sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_URLSAFE)> text;
    return sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(),
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisCounters>> RedisCounters::open(
    std::shared_ptr<RedisStore> store) {
    std::unique_ptr<RedisCounters> counters(new RedisCounters(std::move(store)));
    if (absl::Status status = counters->loop_.open(); !status.ok()) {
        return status;
    }
    if (absl::Status status = counters->link_.open(); !status.ok()) {
        return status;
    }
    try {
        counters->thread_ = std::thread([loop = &counters->loop_] {
            net::block_signals();
            loop->run();
        });
    } catch (const std::system_error& error) {
        return absl::ResourceExhaustedError(absl::StrCat("cannot start a thread: ", error.what()));
    }
    return counters;
}

RedisCounters::~RedisCounters() {
    if (thread_.joinable()) {
        loop_.stop();
        thread_.join();
    }
}

void RedisCounters::apply(std::span<const Transaction> transactions, Now now,
                          std::span<Outcome> outcomes) {
    const std::size_t most = store_->options().max_waiting;
    while (!transactions.empty()) {
        const std::size_t count = std::min(transactions.size(), most);
        Gate gate;
        loop_.post([&, part = transactions.first(count), into = outcomes.first(count)] {
            if (!link_.ask(part, now, into, gate)) {
                gate.open();
            }
        });
        gate.wait();
        transactions = transactions.subspan(count);
        outcomes = outcomes.subspan(count);
    }
}

CounterStats RedisCounters::stats() const {
    return {.keys = count_keys().value_or(0)};
}

std::optional<RedisCounters::Said> RedisCounters::ask(
    std::initializer_list<std::string_view> words) const {
    std::string command;
    append_resp_command(command, words);
    std::optional<Said> found;
    Gate gate;
    loop_.post([&] {
        link_.run(std::move(command), [&](const RespReply* reply) {
            if (reply != nullptr && !reply->array && !reply->values.empty()) {
                const RespValue& value = reply->values.front();
                found = Said{value.kind, std::string(value.text), value.integer};
            }
            gate.open();
        });
    });
    gate.wait();
    return found;
}

std::optional<std::uint64_t> RedisCounters::count_keys() const {
    const std::optional<Said> found = ask({"DBSIZE"});
    return found && found->kind == RespValue::Kind::integer && found->integer >= 0
               ? std::optional(static_cast<std::uint64_t>(found->integer))
               : std::nullopt;
}

// A key like the others, but for ever: it goes when they all go.
std::optional<std::string> RedisCounters::marker() const {
    const std::string key = store_->options().prefix + "marker";
    std::optional<Said> found = ask({"GET", key});
    if (found && found->kind == RespValue::Kind::null) {
        const std::string mine = random_text();
        found = ask({"SET", key, mine, "NX", "GET"});
        if (found && found->kind == RespValue::Kind::null) {
            return mine;
        }
    }
    return found && found->kind == RespValue::Kind::bulk ? std::optional(found->text)
                                                         : std::nullopt;
}

absl::StatusOr<std::unique_ptr<Counters>> open_redis_counters(const RedisOptions& options) {
    absl::StatusOr<std::shared_ptr<RedisStore>> store = RedisStore::open(options);
    if (!store.ok()) {
        return store.status();
    }
    absl::StatusOr<std::unique_ptr<RedisCounters>> counters =
        RedisCounters::open(*std::move(store));
    if (!counters.ok()) {
        return counters.status();
    }
    return std::unique_ptr<Counters>(*std::move(counters));
}

}  // namespace ration
