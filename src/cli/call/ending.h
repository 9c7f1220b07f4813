// How a call ended, for scripts (exit codes) and for people (a line).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ration/client.h"

namespace ration {

// Scripts rely on these.
inline constexpr int exit_good = 0;       // 2xx, or a 3xx that leads nowhere
inline constexpr int exit_refused = 1;    // an answer that waiting does not change
inline constexpr int exit_wrong_use = 2;  // of the command
inline constexpr int exit_limited = 3;    // limited still: try again later
inline constexpr int exit_no_answer = 4;  // nothing was done, or it may be asked again safely
inline constexpr int exit_unknown = 5;    // it may have been done, and must not be repeated blindly
inline constexpr int exit_interrupted = 130;

// `method`: of the request, for what is not known of an unsafe one must not be asked again blindly.
[[nodiscard]] int exit_code_of(const ClientResult& result, std::string_view method);

// It has a key under which it may be asked again: one that redirects to another origin did not
// leave behind.
[[nodiscard]] bool keyed(const ClientResult& result);

// It was sent, nobody knows what came of it, and it has no key to ask again under.
[[nodiscard]] bool may_have_been_done(const ClientResult& result, std::string_view method);

// Of a call whose answer came and could not be passed on: to whoever asked it is none.
[[nodiscard]] int exit_code_of_lost(const ClientResult& result, std::string_view method);

// When it may be tried again, if the server said so. Of what waiting does not change, never.
[[nodiscard]] std::optional<Wall> again_from(const ClientResult& result);

// "429 rate_limited after 6 attempts (attempts_exhausted); try again from 2026-11-30T00:01:00Z"
[[nodiscard]] std::string ending_of(const ClientResult& result);

// Why a call waits: "the server asked for it (Retry-After)".
[[nodiscard]] std::string_view words_for(WaitSource source);

// What others wrote, as text of one line: control characters, which a terminal would obey, and
// bytes that are not UTF-8 are spelled "\\x1b".
[[nodiscard]] std::string printable(std::string_view text);

// "12.3 s"
[[nodiscard]] std::string seconds_text(Nanos time);

}  // namespace ration
