// What happens to the calls of one command, told: as a timeline (-v) and as one live text. Thread
// rule: any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cli/call/terminal.h"
#include "ration/client.h"

namespace ration {

class Story {
public:
    // `terminal` must outlive it. Without `verbose` no lines are written.
    Story(Terminal& terminal, bool verbose);

    [[nodiscard]] ClientHooks hooks();
    // What is waited for now, with the time left; empty when nothing is.
    [[nodiscard]] std::string waiting() const;
    [[nodiscard]] Nanos elapsed() const;

private:
    void tell(std::uint64_t call, const std::string& what);
    void note_wait(const ClientHooks::Wait& wait);
    void forget(std::uint64_t call);

    struct Held {
        WaitSource source;
        std::string reason;
        std::optional<Mono> until;
    };
    Terminal& terminal_;
    bool verbose_;
    SystemClock clock_;
    Mono begun_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, Held> held_;
};

}  // namespace ration
