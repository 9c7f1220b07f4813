// What to do when an attempt has ended. Pure: times, tokens and the random source are arguments.
//
//   const Told told = read_answer(outcome, wall_now);
//   const Verdict verdict = decide({...}, random);
//   if (verdict.retry) wait(verdict.wait);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/limit_fields.h"
#include "ration/client.h"
#include "ration/retry_policy.h"

namespace ration::client {

// How one attempt ended. `headers` and `body` must live while it is read.
struct Outcome {
    std::optional<AttemptError> error;  // no answer
    int status = 0;
    const HeaderLines* headers = nullptr;
    std::string_view body;               // of an answer from 400 on
    bool other_origin = false;           // redirects led away: what it tells is of another server
    bool multiplexed = false;            // requests share connections (HTTP/2)
    std::optional<StopReason> redirect;  // why a redirect was not followed

    [[nodiscard]] bool answered() const { return !error; }
};

// What one answer tells.
struct Told {
    std::string error_type;
    std::vector<ToldLimit> limits;
    std::optional<Nanos> floor;  // the wait that the server asks for
    WaitSource source = WaitSource::backoff;
};

[[nodiscard]] Told read_answer(const Outcome& outcome, Wall now);

enum class BodyKind : std::uint8_t {
    none,
    buffered,
    rewindable,
    stream_once,
    stream_once_consumed
};

struct EndedAttempt {
    const RetryPolicy& policy;
    std::string_view method;
    bool keyed = false;
    BodyKind body = BodyKind::none;
    unsigned attempts_made = 1;  // with the ended one
    Nanos elapsed{0};            // since the call began
    const Outcome& outcome;
    const Told& told;
    std::uint32_t retry_tokens = 0;  // thousandths
    bool cancelled = false;
    Wall now{};
};

struct Verdict {
    bool retry = false;
    StopReason reason = StopReason::success;  // when not
    Nanos wait{0};                            // when it is
    std::optional<Wall> retry_at;             // when the server named a time
};

// The checks in the order in which they are told; the first that speaks ends the call.
[[nodiscard]] Verdict decide(const EndedAttempt& ended, RandomSource& random);

// Of a policy's lists.
[[nodiscard]] bool lists(const std::vector<std::string>& list, std::string_view word);
[[nodiscard]] bool lists(const std::vector<int>& list, int status);

// All lines of a field joined by ", "; nullopt when there is none.
[[nodiscard]] std::optional<std::string> joined_field(const HeaderLines& headers,
                                                      std::string_view name);

}  // namespace ration::client
