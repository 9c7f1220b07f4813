#include "cli/call/story.h"

#include <algorithm>

#include "base/text.h"
#include "cli/call/ending.h"
#include "cli/call/shown.h"

namespace ration {
namespace {

std::string milliseconds_text(Nanos time) {
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(time).count();
    const std::string fraction = cat(1000 + ms % 1000);
    const std::string seconds = cat(ms / 1000, '.', fraction.substr(1));
    return std::string(seconds.size() < 9 ? 9 - seconds.size() : 0, ' ') + seconds;
}

// The fields of an answer that speak of limits.
std::string limits_in(const HeaderLines& headers) {
    std::string text;
    for (const std::string_view field :
         {"retry-after", "ratelimit", "ratelimit-remaining", "ratelimit-reset",
          "x-ratelimit-remaining", "x-ratelimit-reset", "idempotent-replayed"}) {
        if (const std::string* value = find_header(headers, field)) {
            text += cat("; ", field, ": ", printable(*value));
        }
    }
    return text;
}

std::string answer_text(const ClientHooks::Answer& answer) {
    if (answer.error) {
        return cat("no answer: ", name(*answer.error));
    }
    std::string text = cat("answer ", answer.status);
    if (!answer.error_type.empty()) {
        text += cat(" ", printable(answer.error_type));
    }
    return text + (answer.headers ? limits_in(*answer.headers) : "");
}

}  // namespace

Story::Story(Terminal& terminal, bool verbose)
    : terminal_(terminal), verbose_(verbose), begun_(clock_.now().mono) {}

ClientHooks Story::hooks() {
    ClientHooks hooks;
    hooks.on_send = [this](const ClientHooks::Send& send) {
        forget(send.call);
        tell(send.call,
             cat("send ", send.attempt, ": ", send.method, " ", printable(shown_url(send.url))));
    };
    hooks.on_answer = [this](const ClientHooks::Answer& answer) {
        tell(answer.call, answer_text(answer));
    };
    hooks.on_wait = [this](const ClientHooks::Wait& wait) { note_wait(wait); };
    hooks.on_end = [this](std::uint64_t call, const ClientResult& result) {
        forget(call);
        tell(call, "end: " + ending_of(result));
    };
    return hooks;
}

void Story::note_wait(const ClientHooks::Wait& wait) {
    {
        const std::lock_guard lock(mutex_);
        const auto until = wait.time ? std::optional(clock_.now().mono + *wait.time) : std::nullopt;
        held_[wait.call] = {wait.source, std::string(wait.reason), until};
    }
    const std::string time = wait.time ? milliseconds_text(*wait.time) : std::string("   for now");
    const std::string after = wait.reason.empty() ? "" : cat(" after ", wait.reason);
    tell(wait.call, cat("wait", time.substr(time.find_first_not_of(' ') - 1),
                        wait.time ? " s: " : ": ", words_for(wait.source), after));
}

void Story::tell(std::uint64_t call, const std::string& what) {
    if (verbose_) {
        terminal_.line(cat(milliseconds_text(elapsed()), " s  #", call, "  ", what));
    }
}

void Story::forget(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    held_.erase(call);
}

std::string Story::waiting() const {
    const std::lock_guard lock(mutex_);
    if (held_.empty()) {
        return {};
    }
    // The one that ends first is the one that changes something.
    const auto first =
        std::min_element(held_.begin(), held_.end(), [](const auto& a, const auto& b) {
            return a.second.until.value_or(Mono::max()) < b.second.until.value_or(Mono::max());
        });
    const Held& held = first->second;
    std::string text = "waiting";
    if (held.until) {
        text += " " + seconds_text(std::max(Nanos(0), *held.until - clock_.now().mono));
    }
    text += cat(": ", words_for(held.source));
    return held.reason.empty() ? text : cat(text, " after ", held.reason);
}

Nanos Story::elapsed() const {
    return clock_.now().mono - begun_;
}

}  // namespace ration
