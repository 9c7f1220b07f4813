// A transaction as a run of the script, and the script's answer as an outcome. Pure.
//
// Thread rule: const, share freely. Bounds: those of Counters; a key in Redis has the prefix, the
// limit's name and 22 digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ration/counters.h"
#include "ration/redis_counters.h"
#include "wire/resp.h"

namespace ration {

struct RedisCall {
    std::string command;
    std::string undo;  // frees the slots that the call may have taken; empty: there are none
    std::size_t not_after_at = 0;  // where in `command` the last moment stands
    std::uint8_t charges = 0;
    bool repeatable = false;  // as `set_owed` makes it, doing it twice is doing it once
    Now asked;
};

class RedisCodec {
public:
    explicit RedisCodec(const RedisOptions& options);

    // False: InvalidArgument as Counters says, or numbers that `fits_redis` refuses.
    [[nodiscard]] bool encode(const Transaction& transaction, Now now, RedisCall& call) const;
    // Writes when, on the server's clock, the call is too late; nullopt: never.
    void set_last_moment(RedisCall& call, std::optional<std::int64_t> server_micros) const;

    // Makes a repeatable call one that is right at any time and any number of times.
    void set_owed(RedisCall& call) const;

    enum class Answer : std::uint8_t { outcome, too_late, nonsense };
    // `server_micros` gets the time that the server read (unless time comes from the calls).
    [[nodiscard]] Answer decode(const RespReply& reply, const RedisCall& call, Outcome& outcome,
                                std::int64_t& server_micros) const;

    // The answer of TIME, as the script counts.
    [[nodiscard]] static std::optional<std::int64_t> micros_of_time(const RespReply& reply);

    [[nodiscard]] std::string redis_key(std::string_view key, std::size_t rule_bytes) const;

private:
    void append_charge(const Charge& charge, Now now, std::string& blob, bool& ok) const;
    void append_header(const Transaction& transaction, Now now, std::string& blob) const;
    void append_undo(const Transaction& transaction, Now now, RedisCall& call) const;

    std::string prefix_;
    double lease_micros_;
    bool time_from_calls_;
};

}  // namespace ration
