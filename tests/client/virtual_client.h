// A client on a virtual clock before a scripted server: the dispatcher with nothing real around it.
//
//   VirtualClient world(options, random);
//   world.server = [&](VirtualClient::Sent& sent) { world.answer(sent, milliseconds(20), reply); };
//   VirtualClient::Asked& asked = world.ask(request);
//   world.run();   // until nothing is left to happen
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/dispatcher.h"
#include "vector_cases.h"

namespace ration::client {

class VirtualClient {
public:
    struct Asked {
        Call call;
        RetryPolicy policy;
        std::vector<Mono> sends;
        std::vector<std::string> events;
        std::vector<std::pair<std::string, Nanos>> waits;
        int last_status = 0;
        std::optional<AttemptError> last_error;
        std::optional<StopReason> ended;
        std::optional<Wall> retry_at;
        Mono ended_at{};
        std::uint64_t attempt = 0;  // number of the open one
        bool cancelled = false;

        // A status, the name of the attempt's error, or why nothing was sent.
        [[nodiscard]] std::string result() const;
    };
    struct Sent {
        Asked* asked;
        Mono at;
        Mono give_up;
        std::optional<Mono> replied;
    };

    VirtualClient(ClientOptions options, RandomSource& random)
        : options_(without_connections(std::move(options))),
          dispatcher_(options_, random),
          now_(start_of_cases()) {}

    std::function<void(Sent&)> server;
    std::function<void(Asked&)> on_send = [](Asked&) {};
    Nanos timer_error{0};  // timers of at least 20 ms fire so much early

    // `set` fills in the call's own fields.
    Asked& ask(const RetryPolicy& policy, const std::function<void(Call&)>& set);
    void answer(Sent& sent, Nanos after, const Json& reply);
    void never_answer(Sent& sent);
    void at(Nanos since_start, std::function<void()> what);
    // Its transfer ends too: what was on its way is not answered any more.
    void cancel(Asked& asked) {
        asked.cancelled = true;
        dispatcher_.cancel(asked.call, now());
    }
    // Until nothing is left to happen, or the time of `since_start` has come.
    void run(std::optional<Nanos> since_start = {});

    [[nodiscard]] Now now() const { return {now_.mono, now_.wall + wall_jump}; }
    [[nodiscard]] Nanos since_start() const { return now_.mono - start_of_cases().mono; }
    [[nodiscard]] bool timers_left() const { return dispatcher_.wake_at().has_value(); }
    [[nodiscard]] const std::deque<Sent>& sends() const { return sends_; }
    [[nodiscard]] std::deque<Asked>& asked() { return asked_; }
    [[nodiscard]] Dispatcher& dispatcher() { return dispatcher_; }
    Nanos wall_jump{0};

private:
    // There are none here: as many calls are in flight as the rules let go.
    static ClientOptions without_connections(ClientOptions options) {
        options.max_host_connections = 0;
        return options;
    }
    void do_steps();
    void do_step(const Step& step);

    ClientOptions options_;
    Dispatcher dispatcher_;
    Now now_;
    std::multimap<Mono, std::function<void()>> events_;
    std::deque<Asked> asked_;
    std::deque<Sent> sends_;
};

}  // namespace ration::client
