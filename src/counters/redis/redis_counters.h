// The Redis counters' class, for those who need more of it than the interface: the server, tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "counters/redis/link.h"
#include "counters/redis/store.h"
#include "net/loop.h"
#include "ration/redis_counters.h"

namespace ration {

// Blocking: each call waits for its answers, which a thread of its own brings.
class RedisCounters final : public Counters {
public:
    [[nodiscard]] static absl::StatusOr<std::unique_ptr<RedisCounters>> open(
        std::shared_ptr<RedisStore> store);
    ~RedisCounters() override;

    void apply(std::span<const Transaction> transactions, Now now,
               std::span<Outcome> outcomes) override;
    // Keys end by themselves.
    void sweep(Now /*now*/, std::size_t /*budget*/) override {}
    // `keys` as below; 0 when there is no answer.
    [[nodiscard]] CounterStats stats() const override;

    // Keys of the whole database, asked for now.
    [[nodiscard]] std::optional<std::uint64_t> count_keys() const;

    // Names what the server holds: the same for all who share it, and another one after it was lost
    // (a flush, a restart without persistence). nullopt: no answer.
    [[nodiscard]] std::optional<std::string> marker() const;

    [[nodiscard]] RedisStore& store() { return *store_; }

private:
    explicit RedisCounters(std::shared_ptr<RedisStore> store)
        : store_(std::move(store)), loop_(clock_), link_(loop_, store_) {}

    struct Said {
        RespValue::Kind kind = RespValue::Kind::null;
        std::string text;
        std::int64_t integer = 0;
    };
    // The answer to one command, waited for; nullopt: none, an error, or an array.
    [[nodiscard]] std::optional<Said> ask(std::initializer_list<std::string_view> words) const;

    std::shared_ptr<RedisStore> store_;
    SystemClock clock_;
    mutable net::Loop loop_;
    mutable RedisLink link_;  // the thread's
    std::thread thread_;
};

}  // namespace ration
